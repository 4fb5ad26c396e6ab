#include "parallel/engine/transfers.hpp"

#include "parallel/engine/independent.hpp"

namespace pario::engine {
namespace {

using exchange::Timer;
using plan::Direction;

constexpr std::uint64_t kQuickBytes = 64 << 10;

}  // namespace

void Transfers::open(std::uint64_t memory, const char* call) {
  calls_ = std::make_unique<CollectiveCalls>(context_.shared_comm(), context_.path(), memory,
                                             context_.describe_call(call));
}

base::Result<std::uint64_t> Transfers::run(Direction direction, const pattern::Access& access,
                                           With with, const char* call) {
  const AccessPolicy& policy = context_.policy_of_call();
  if (with == With::alone) return run_independent(direction, access, call, policy);
  finish_started();
  kept_.flush();
  return collective_.run(*calls_, direction, access, call, policy);
}

base::Result<std::uint64_t> Transfers::move_run(Direction direction, base::Extent where,
                                                std::byte* memory, With with, const char* call) {
  const AccessPolicy& policy = context_.policy_of_call();
  if (!policy.is_plain() || kept_.used() || kept_.errors().exists() || started_.may_run())
    return run(direction, {.buffer = memory, .position = where.begin, .bytes = where.length()},
               with, call);
  if (with == With::together && context_.comm().size() > 1)
    return collective_.move_run(*calls_, direction, where, memory, call, policy);
  const exchange::Stopwatch watch;
  MovedRun run = engine::move_run(context_, policy, direction, where, memory);
  context_.count_run(direction, with, false, where, run, watch.elapsed_ns());
  return run.bytes ? run.bytes : Count(context_.complete_error(run.bytes.error(), call));
}

base::Result<std::uint64_t> Transfers::run_independent(Direction direction,
                                                       const pattern::Access& access,
                                                       const char* call,
                                                       const AccessPolicy& policy) {
  Statistics statistics;
  Count moved = std::uint64_t{0};
  {
    const Timer timer(statistics.total_ns);
    moved = run_in_order(direction, access, pattern::summarise(access), policy, statistics);
  }
  statistics.count_call(direction, With::alone, moved ? *moved : 0);
  context_.add(statistics);
  if (!moved) return context_.complete_error(moved.error(), call);
  const base::Status earlier = kept_.errors().take_error();
  return earlier ? moved : Count(earlier.error());
}

/// Executes an independent access in order with the kept writes of this rank.
base::Result<std::uint64_t> Transfers::run_in_order(Direction direction,
                                                    const pattern::Access& access,
                                                    const pattern::Summary& summary,
                                                    const AccessPolicy& policy,
                                                    Statistics& statistics) {
  const base::Status written = kept_.flush_overlapping_merged(summary.span);
  if (!written) return written.error();
  if (kept_.keeps(direction, access, summary, policy)) {
    kept_.add(access, summary, policy);
    ++statistics.written_behind;
    return access.bytes;
  }
  kept_.flush_overlapping(summary.span);
  Count moved =
      IndependentAccess(context_, policy, statistics).run_verified(direction, access, summary);
  const bool at_end = direction == Direction::read && moved && *moved < access.bytes;
  if (!at_end || kept_.end() == 0) return moved;
  kept_.errors().put_error(kept_.save());  // the end of the file may be among the kept bytes
  return IndependentAccess(context_, policy, statistics).run_verified(direction, access, summary);
}

std::shared_ptr<Operation> Transfers::start(Direction direction, const pattern::Access& access,
                                            With with, const char* call) {
  const std::shared_ptr<const AccessPolicy> policy = context_.policy();
  if (with == With::together) kept_.flush();
  if (is_quick(direction, access, *policy))
    if (std::shared_ptr<Operation> started = start_quick_write(access, with, call)) return started;
  if (with == With::alone && is_kept(direction, access, *policy))
    return std::make_shared<FinishedCall>(run_independent(direction, access, call, *policy));
  if (with == With::alone)
    return started_.start_independent([this, direction, access, call, policy] {
      return run_independent(direction, access, call, *policy);
    });
  return started_.start_collective([this, direction, access, call, policy] {
    return collective_.run(*calls_, direction, access, call, *policy);
  });
}

/// True if the access is made in less time than another thread needs to begin it: it copies few
/// bytes to the page cache. The file system of another host may have to be asked for the page.
bool Transfers::is_quick(Direction direction, const pattern::Access& access,
                         const AccessPolicy& policy) const {
  return direction == Direction::write && access.bytes <= kQuickBytes && policy.is_plain() &&
         !layout::traits(policy.layout.kind).network && !kept_.used() && access.memory.contiguous();
}

/// True if the access is a small write that stays in memory: it is made at once, too.
bool Transfers::is_kept(Direction direction, const pattern::Access& access,
                        const AccessPolicy& policy) const {
  return kept_.used() && access.bytes <= kQuickBytes &&
         kept_.keeps(direction, access, pattern::summarise(access), policy);
}

/// Makes a quick write at once. Null: the file has several runs, or other ranks must first come.
std::shared_ptr<Operation> Transfers::start_quick_write(const pattern::Access& access, With with,
                                                        const char* call) {
  const base::Extent where = access.view.find_run(access.position, access.bytes);
  const bool alone = with == With::alone;
  if (where.empty() || (!alone && started_.has_unfinished())) return nullptr;
  std::byte* const memory = access.buffer + access.memory.true_lower();
  if (alone || context_.comm().size() == 1)
    return std::make_shared<FinishedCall>(move_run(Direction::write, where, memory, with, call));
  if (!CollectiveAccess::expects_run(*calls_, Direction::write)) return nullptr;
  const auto begun = CollectiveAccess::begin_run(*calls_, Direction::write, where, call);
  const auto finish = [this, begun, where, memory, call, policy = context_.policy()] {
    return collective_.finish_run(*calls_, begun, Direction::write, where, memory, call, *policy);
  };
  if (begun.may_wait) return started_.start_collective(finish);
  return std::make_shared<FinishedCall>(finish());
}

void Transfers::refuse(Direction direction, const base::Error& error, const char* call) {
  finish_started();
  collective_.refuse(*calls_, direction, error, call, *context_.policy());
}

void Transfers::start_refusal(Direction direction, const base::Error& error, const char* call) {
  kept_.flush();
  started_.start_collective([this, direction, error, call, policy = context_.policy()]() -> Count {
    collective_.refuse(*calls_, direction, error, call, *policy);
    return error;
  });
}

void Transfers::miss(std::optional<Direction> direction, const base::Error& error,
                     const char* name) {
  Call call = direction ? collective_.describe_call(*direction, name, *context_.policy())
                        : context_.describe_call(name);
  call.error = error;
  calls_->miss(call);
}

base::Status Transfers::flush() {
  finish_started();
  if (context_.hints().pario_write_behind == 0 && !kept_.used()) return {};
  Statistics statistics;
  base::Status all;
  {
    const Timer timer(statistics.total_ns);
    all = kept_.has_windows() ? collective_.flush_merged(*calls_) : collective_.flush_kept(*calls_);
  }
  context_.add(statistics);
  if (!all && !all.error().where.empty()) return all;  // an earlier error waits for the next call
  base::Status mine = kept_.errors().take_error();
  return mine ? all : mine;
}

}  // namespace pario::engine
