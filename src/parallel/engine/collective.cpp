#include "parallel/engine/collective.hpp"

#include <algorithm>
#include <optional>

#include "parallel/engine/guarded_file.hpp"
#include "parallel/engine/independent.hpp"

namespace pario::engine {
namespace {

using exchange::Timer;
using plan::Direction;

constexpr const char* kKeptCall = "delayed writes";
/// The check of the exchange of kept writes, different from that of any call that a rank may make
/// by mistake at the same time.
constexpr std::uint64_t kKeptCheck = 0x6d65726765640000;

pattern::Access access_of_run(base::Extent where, std::byte* memory) {
  return {.buffer = memory, .position = where.begin, .bytes = where.length()};
}

/// True if each rank writes one run, or nothing, and some of these overlap.
bool overlapping_runs(std::span<const pattern::Summary> ranks) {
  std::vector<base::Extent> runs;
  for (const pattern::Summary& rank : ranks) {
    if (rank.bytes == 0) continue;
    if (rank.pieces > 1 || rank.bytes != rank.span.length()) return false;
    runs.push_back(rank.span);
  }
  std::ranges::sort(runs, {}, &base::Extent::begin);
  const auto overlap = [](base::Extent a, base::Extent b) { return a.end > b.begin; };
  return std::ranges::adjacent_find(runs, overlap) != runs.end();
}

}  // namespace

struct CollectiveAccess::Access {
  CollectiveCalls& calls;
  const Call& call;
  const pattern::Access& access;
  const AccessPolicy& policy;
  Statistics& statistics;
};

Call CollectiveAccess::describe_call(Direction direction, const char* name,
                                     const AccessPolicy& policy) const {
  Call call = context_.describe_call(name);
  call.moves_data = true;
  call.direction = direction;
  call.compare_names = policy.hints.pario_check;
  return call;
}

/// Carries out `work(Statistics&)`, a call of the program, and counts it.
template <class Work>
base::Result<std::uint64_t> CollectiveAccess::count_call(Direction direction, const char* name,
                                                         const Work& work) {
  Statistics statistics;
  Count moved = std::uint64_t{0};
  {
    const Timer timer(statistics.total_ns);
    moved = work(statistics);
  }
  statistics.count_call(direction, With::together, moved ? *moved : 0);
  context_.add(statistics);
  return moved ? moved : Count(context_.complete_error(moved.error(), name));
}

base::Result<std::uint64_t> CollectiveAccess::run(CollectiveCalls& calls, Direction direction,
                                                  const pattern::Access& access, const char* name,
                                                  const AccessPolicy& policy) {
  return count_call(direction, name, [&](Statistics& statistics) {
    if (!KeptWrites::merges(direction, policy)) kept_.errors().put_error(flush_merged(calls));
    Call call = describe_call(direction, name, policy);
    call.summary = pattern::summarise(access);
    Access current{calls, call, access, policy, statistics};
    return calls.needs_no_meeting(direction, call.compare_names) ? run_without_meeting(current)
                                                                 : meet_and_execute(current);
  });
}

bool CollectiveAccess::expects_run(CollectiveCalls& calls, Direction direction) {
  return calls.needs_no_meeting(direction, false) &&
         calls.run_ahead()->series().expects_run(direction);
}

CollectiveAccess::BegunRun CollectiveAccess::begin_run(CollectiveCalls& calls, Direction direction,
                                                       base::Extent where, const char* name) {
  RunAhead& ahead = *calls.run_ahead();
  const std::uint64_t number = calls.begin_without_meeting(direction, name);
  if (direction == Direction::read) {
    ahead.begin_read(number);
    return {number, ahead.must_wait(number, {})};
  }
  ahead.begin_run(number, where);
  return {number, ahead.overlaps_others(number, where)};
}

base::Result<std::uint64_t> CollectiveAccess::finish_run(CollectiveCalls& calls, BegunRun begun,
                                                         Direction direction, base::Extent where,
                                                         std::byte* memory, const char* name,
                                                         const AccessPolicy& policy) {
  if (begun.may_wait)
    return count_call(direction, name, [&](Statistics& statistics) {
      const pattern::Access run = access_of_run(where, memory);
      Call call = describe_call(direction, name, policy);
      call.summary = pattern::summarise(run);
      Access current{calls, call, run, policy, statistics};
      return finish_without_meeting(current, begun.number);
    });
  const exchange::Stopwatch watch;
  const MovedRun run = engine::move_run(context_, policy, direction, where, memory);
  RunAhead& ahead = *calls.run_ahead();
  direction == Direction::write ? ahead.finish(begun.number) : ahead.finish_read(begun.number);
  context_.count_run(direction, With::together, true, where, run, watch.elapsed_ns());
  return defer_outcome(calls, name, run.bytes);
}

base::Result<std::uint64_t> CollectiveAccess::move_run(CollectiveCalls& calls, Direction direction,
                                                       base::Extent where, std::byte* memory,
                                                       const char* name,
                                                       const AccessPolicy& policy) {
  if (!expects_run(calls, direction))
    return run(calls, direction, access_of_run(where, memory), name, policy);
  return finish_run(calls, begin_run(calls, direction, where, name), direction, where, memory, name,
                    policy);
}

base::Result<std::uint64_t> CollectiveAccess::meet_and_execute(Access& access) {
  const Summaries ranks = gather_summaries(access.calls, access.call, access.statistics);
  if (!ranks) return ranks.error();
  const bool merges = KeptWrites::merges(access.call.direction, access.policy);
  return merges ? merge(access, *ranks) : execute(access, *ranks);
}

/// A call of a series. If it differs on all ranks, they are all here, and meet.
base::Result<std::uint64_t> CollectiveAccess::run_without_meeting(Access& access) {
  RunAhead& ahead = *access.calls.run_ahead();
  const std::uint64_t number =
      access.calls.begin_without_meeting(access.call.direction, access.call.name);
  ahead.begin(number, access.call.summary);
  if (!ahead.is_usual()) {
    const Timer timer(access.statistics.transfer.wait_ns);
    comm::Watchdog watch = access.calls.watchdog(access.call);
    const base::Result<bool> all_differ = ahead.all_differ(number, watch.patience());
    if (!all_differ || *all_differ) ahead.finish(number);
    if (!all_differ) return fail_all(all_differ.error(), access.call.name);
    if (*all_differ) return meet_and_execute(access);
  }
  return finish_without_meeting(access, number);
}

/// The rest of a call of a series that has begun in RunAhead.
base::Result<std::uint64_t> CollectiveAccess::finish_without_meeting(Access& access,
                                                                     std::uint64_t number) {
  ++access.statistics.direct;
  ++access.statistics.ran_ahead;
  return defer_outcome(access.calls, access.call.name, move_in_order(access, number));
}

/// Moves the bytes of a call that has begun in RunAhead, as if all earlier calls of all ranks had
/// ended and no later one had begun.
base::Result<std::uint64_t> CollectiveAccess::move_in_order(Access& access, std::uint64_t number) {
  RunAhead& ahead = *access.calls.run_ahead();
  const bool writes = access.call.direction == Direction::write;
  const base::Extent span = writes ? access.call.summary.span : base::Extent{};
  if (ahead.must_wait(number, span)) {
    const Timer timer(access.statistics.transfer.wait_ns);
    comm::Watchdog watch = access.calls.watchdog(access.call);
    const base::Status waited = ahead.wait_for_earlier(number, span, watch.patience());
    if (!waited) {
      ahead.finish(number);
      return fail_all(waited.error(), access.call.name);
    }
  }
  const std::vector<base::Extent> later = ahead.find_later(number, span);
  Count moved = later.empty() ? execute_directly(access)
                              : IndependentAccess(context_, access.policy, access.statistics)
                                    .write_around(access.access, access.call.summary, later);
  ahead.finish(number);
  return moved;
}

/// Ends all calls of all ranks: this rank cannot continue in the order of the calls.
base::Error CollectiveAccess::fail_all(const base::Error& error, const char* name) {
  const base::Error complete = context_.complete_error(error, name);
  if (!context_.comm().has_failed()) context_.comm().fail(complete);
  return complete;
}

/// Joins run() of the other ranks: the steps must be the same.
void CollectiveAccess::refuse(CollectiveCalls& calls, Direction direction, const base::Error& error,
                              const char* name, const AccessPolicy& policy) {
  if (!KeptWrites::merges(direction, policy)) kept_.errors().put_error(flush_merged(calls));
  Call call = describe_call(direction, name, policy);
  if (calls.needs_no_meeting(direction, call.compare_names)) {
    calls.run_ahead()->pass(calls.begin_without_meeting(direction, name));
    return calls.defer_error(context_.complete_error(error, name));
  }
  call.error = error;
  static_cast<void>(calls.meet(call));
}

CollectiveAccess::Summaries CollectiveAccess::gather_summaries(CollectiveCalls& calls,
                                                               const Call& call,
                                                               Statistics& statistics) {
  if (context_.comm().size() == 1 && !call.error) return std::vector{call.summary};
  const Timer timer(statistics.transfer.wait_ns);
  const auto notices = calls.meet(call);
  if (!notices) return notices.error();
  kept_.errors().put_error(calls.take_earlier_error());
  std::vector<pattern::Summary> ranks(notices->size());
  std::ranges::transform(*notices, ranks.begin(), &exchange::Notice::summary);
  return ranks;
}

plan::Plan CollectiveAccess::make_plan(const Access& access,
                                       std::span<const pattern::Summary> ranks) const {
  return plan::make_plan(describe_situation(access, ranks), access.policy.hints);
}

plan::Situation CollectiveAccess::describe_situation(
    const Access& access, std::span<const pattern::Summary> ranks) const {
  return {access.call.direction, ranks, context_.comm().topology().node_of, access.policy.layout};
}

base::Result<std::uint64_t> CollectiveAccess::execute(Access& access,
                                                      std::span<const pattern::Summary> ranks) {
  if (context_.comm().size() == 1) return execute_alone(access);
  const plan::Plan plan = make_plan(access, ranks);
  const bool is_in_series = begin_series(access, ranks, plan.way);
  if (plan.way == plan::Way::nothing) {
    if (!access.policy.may_keep_writes()) return std::uint64_t{0};
    return share_outcome(access, std::uint64_t{0});
  }
  const bool windows =
      plan.way == plan::Way::windows && (!access.policy.atomic || access.policy.one_node);
  ++(windows ? access.statistics.through_windows : access.statistics.direct);
  if (is_in_series) {
    access.calls.run_ahead()->begin(access.calls.number(), access.call.summary);
    return defer_outcome(access.calls, access.call.name,
                         move_in_order(access, access.calls.number()));
  }
  Count mine = access.policy.atomic ? execute_atomic(access, ranks, plan, windows)
                                    : share_outcome(access, windows ? execute_windows(access, plan)
                                                                    : execute_directly(access));
  if (!mine) return mine;
  if (const base::Status same = verify_together(access); !same) return same.error();
  return mine;
}

/// After a meeting: begins a series if the meetings before allow it. Returns true if this call is
/// its first.
bool CollectiveAccess::begin_series(const Access& access, std::span<const pattern::Summary> ranks,
                                    plan::Way way) {
  RunAhead* const ahead = access.calls.run_ahead();
  if (ahead == nullptr) return false;
  ahead->begin_series(access.call.direction, ranks, access.call.summary,
                      way == plan::Way::direct && access.policy.may_run_ahead());
  return ahead->series().is_open();
}

base::Result<std::uint64_t> CollectiveAccess::execute_alone(Access& access) {
  IndependentAccess independent(context_, access.policy, access.statistics);
  return share_outcome(
      access, independent.run_verified(access.call.direction, access.access, access.call.summary));
}

/// Executes a call in atomic mode. Ranks whose bytes may overlap do not each lock and write all of
/// theirs, one after the other: rank 0 locks the file for all, and the bytes of the highest rank
/// stay. Otherwise, and on several nodes, each rank locks its own span.
base::Result<std::uint64_t> CollectiveAccess::execute_atomic(
    Access& access, std::span<const pattern::Summary> ranks, plan::Plan plan, bool windows) {
  const bool writes = access.call.direction == Direction::write;
  const bool overlapping = writes && access.policy.one_node && overlapping_runs(ranks);
  if (!windows && !overlapping) return share_outcome(access, execute_directly(access));
  std::optional<OverlapLock> lock;
  if (context_.is_first()) lock.emplace(context_, plan.span, writes);
  const base::Status locked = lock ? lock->status() : base::Status();
  if (base::Status all = access.calls.agree(locked, access.call); !all) return all.error();
  plan.in_order = true;
  if (windows) return share_outcome(access, execute_windows(access, plan));
  std::vector<base::Extent> later;
  for (const pattern::Summary& rank :
       ranks.subspan(static_cast<std::size_t>(context_.comm().rank()) + 1))
    later.push_back(rank.span);
  return share_outcome(access, IndependentAccess(context_, access.policy, access.statistics)
                                   .write_around(access.access, access.call.summary, later));
}

base::Result<std::uint64_t> CollectiveAccess::execute_directly(Access& access) {
  return IndependentAccess(context_, access.policy, access.statistics)
      .run(access.call.direction, access.access, access.call.summary);
}

base::Result<std::uint64_t> CollectiveAccess::execute_windows(Access& access,
                                                              const plan::Plan& plan) {
  context_.note_windows(plan.window, plan.aggregators.size());
  GuardedFile file(context_, access.policy, GuardedFile::Locks::gate);
  const base::Status status =
      access.calls.run(plan, access.access, file, access.call, access.statistics.transfer);
  if (!status) return status.error();
  if (access.call.direction == Direction::write) return access.access.bytes;
  return access.calls.exchange().bytes_read();
}

base::Result<std::uint64_t> CollectiveAccess::share_outcome(Access& access, const Count& mine) {
  const base::Status outcome =
      mine ? kept_.errors().take_error()
           : base::Status(context_.complete_error(mine.error(), access.call.name));
  const Timer timer(access.statistics.transfer.wait_ns);
  const base::Status all = access.calls.agree(outcome, access.call);
  return all ? mine : Count(all.error());
}

/// Returns the outcome of this rank alone. The next meeting shares an error with the others.
base::Result<std::uint64_t> CollectiveAccess::defer_outcome(CollectiveCalls& calls,
                                                            const char* name, const Count& mine) {
  if (!mine) {
    base::Error error = context_.complete_error(mine.error(), name);
    calls.defer_error(error);
    return error;
  }
  const base::Status earlier = kept_.errors().take_error();
  return earlier ? mine : Count(earlier.error());
}

base::Status CollectiveAccess::verify_together(Access& access) {
  if (!access.policy.hints.pario_verify || access.call.direction != Direction::write) return {};
  base::Status same;
  if (access.access.bytes > 0)
    same = IndependentAccess(context_, access.policy, access.statistics)
               .verify(access.access, access.call.summary.span);
  return access.calls.agree(same, access.call);
}

/// Keeps a collective write in memory if that pays and it fits; otherwise exchanges the kept ones
/// first.
base::Result<std::uint64_t> CollectiveAccess::merge(Access& access,
                                                    std::span<const pattern::Summary> ranks) {
  const bool pays = plan::merging_pays(describe_situation(access, ranks), access.policy.hints);
  if (pays && kept_.fits_merged(ranks, access.policy)) return add_to_merged(access, ranks);
  if (!kept_.has_merged()) return execute(access, ranks);
  const base::Status earlier = flush_merged(access.calls);
  if (pays && kept_.fits_merged(ranks, access.policy)) {
    Count kept = add_to_merged(access, ranks);
    return earlier ? kept : Count(earlier.error());
  }
  kept_.errors().put_error(earlier);
  // An exchange uses the summaries of the last meeting.
  const Summaries again = gather_summaries(access.calls, access.call, access.statistics);
  return again ? execute(access, *again) : Count(again.error());
}

base::Result<std::uint64_t> CollectiveAccess::add_to_merged(
    Access& access, std::span<const pattern::Summary> ranks) {
  kept_.add_merged(access.access, access.call.summary.span, ranks);
  ++access.statistics.merged_calls;
  return access.access.bytes;
}

base::Status CollectiveAccess::flush_merged(CollectiveCalls& calls) {
  if (!kept_.has_merged()) return {};
  Statistics statistics;
  statistics.merged_exchanges = 1;
  return exchange_kept(calls, kept_.take_merged(), *context_.policy(), statistics);
}

base::Status CollectiveAccess::flush_kept(CollectiveCalls& calls) {
  AccessPolicy policy = *context_.policy();
  if (policy.hints.pario_write_behind == 0) return flush_merged(calls);
  // The hint of the program is about its collective calls: these writes are none.
  policy.hints.romio_cb_write = hints::Choice::automatic;
  Statistics statistics;
  statistics.merged_exchanges = kept_.has_merged() ? 1 : 0;
  return exchange_kept(calls, kept_.take_all(), policy, statistics);
}

/// Writes the bytes of all ranks together. All ranks make the call.
base::Status CollectiveAccess::exchange_kept(CollectiveCalls& calls, const KeptBytes::Batch& batch,
                                             const AccessPolicy& policy, Statistics& statistics) {
  Call call = context_.describe_call(kKeptCall, kKeptCheck);
  call.summary = pattern::summarise(batch.access);
  Access access{calls, call, batch.access, policy, statistics};
  const Summaries ranks = gather_summaries(calls, call, statistics);
  base::Status status = ranks.status();
  if (ranks) {
    status = execute(access, *ranks).status();
  } else if (batch.access.bytes > 0) {  // the other ranks are in another call, or dead
    const base::Status written = write_kept_bytes(context_, batch.access);
    if (!written) status = written;  // lost bytes are reported first
  }
  if (statistics.merged_exchanges == 0)
    statistics.writes_behind = statistics.transfer.system_writes;
  context_.add(statistics);
  return status ? status : base::Status(context_.complete_error(status.error(), kKeptCall));
}

}  // namespace pario::engine
