#include "parallel/engine/independent.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include "parallel/engine/run_ahead.hpp"

namespace pario::engine {
namespace {

using exchange::Timer;
using plan::Direction;

/// Pieces of memory below this size are packed rather than passed to the kernel one by one.
constexpr std::uint64_t kSmallPiece = 2048;
constexpr std::size_t kMostPieces = IOV_MAX;

/// Atomic calls hold the range and thread locks from begin to end.
GuardedFile::Locks locks_of(const AccessPolicy& policy) {
  return policy.atomic ? GuardedFile::Locks::gate : GuardedFile::Locks::range;
}

/// Excludes read-modify-writes during a plain write: the gate excludes the node's ranks. Other
/// nodes modify only with hint romio_ds_write=enable, and a range lock excludes them. The locks are
/// taken in the order of GuardedFile::begin_modify(). Does nothing for reads.
class PlainPass {
 public:
  PlainPass(FileContext& context, const AccessPolicy& policy, Direction direction,
            base::Extent span) {
    if (direction == Direction::read) return;
    const bool others_modify = !policy.one_node && !policy.atomic &&
                               policy.hints.romio_ds_write == hints::Choice::enable &&
                               context.file().capabilities().locks;
    if (others_modify) {
      threads_ = std::unique_lock(*context.guards().threads);
      status_ = range_.emplace(context.file(), span, true).status();
    }
    if (status_)
      status_ = gate_.emplace(context.guards().gate.get(), WriteGate::Write::plain).status();
  }
  const base::Status& status() const { return status_; }

 private:
  base::Status status_ = {};
  std::unique_lock<std::shared_mutex> threads_ = {};
  std::optional<RangeLock> range_ = {};
  std::optional<GatePass> gate_ = {};
};

base::Error describe_difference(const std::string& path, std::uint64_t offset) {
  return {
      .number = EIO,
      .operation = "verify",
      .path = path,
      .where = base::Extent::at(offset, 1),
      .detail = "byte " + std::to_string(offset) + " of the file is not the one that was written"};
}

MovedRun read_run(FileContext& context, base::Extent where, std::byte* memory) {
  MovedRun run{where.length()};
  if (ReadAhead* const ahead = context.read_ahead();
      ahead != nullptr && ahead->read(where, memory, run.by_system))
    return run;
  run.bytes = context.file().read(where.begin, {memory, where.length()});
  if (run.bytes) run.by_system = *run.bytes;
  return run;
}

}  // namespace

MovedRun move_run(FileContext& context, const AccessPolicy& policy, Direction direction,
                  base::Extent where, std::byte* memory) {
  if (direction == Direction::read) return read_run(context, where, memory);
  const PlainPass pass(context, policy, direction, where);
  if (!pass.status()) return {pass.status().error()};
  const base::Status status = context.file().write(where.begin, {memory, where.length()});
  context.note_change();
  if (!status) return {status.error()};
  return {where.length(), where.length()};
}

IndependentAccess::IndependentAccess(FileContext& context, const AccessPolicy& policy,
                                     Statistics& statistics)
    : context_(context),
      policy_(policy),
      statistics_(statistics),
      counters_(statistics.transfer),
      file_(context, policy, locks_of(policy)) {}

base::Result<std::uint64_t> IndependentAccess::run(Direction direction,
                                                   const pattern::Access& access,
                                                   const pattern::Summary& summary) {
  if (access.bytes == 0) return std::uint64_t{0};
  if (!policy_.atomic) return run_unlocked(direction, access, summary);
  const OverlapLock lock(context_, summary.span, direction == Direction::write);
  if (!lock.status()) return lock.status().error();
  return run_unlocked(direction, access, summary);
}

base::Result<std::uint64_t> IndependentAccess::run_verified(Direction direction,
                                                            const pattern::Access& access,
                                                            const pattern::Summary& summary) {
  Count moved = run(direction, access, summary);
  if (!moved || direction == Direction::read || access.bytes == 0) return moved;
  if (!policy_.hints.pario_verify) return moved;
  const base::Status same = verify(access, summary.span);
  return same ? moved : Count(same.error());
}

base::Result<std::uint64_t> IndependentAccess::write_around(const pattern::Access& access,
                                                            const pattern::Summary& summary,
                                                            std::span<const base::Extent> except) {
  pattern::Walker walker(access);
  for (const base::Extent& part : parts_outside(summary.span, {except.begin(), except.end()})) {
    const Count written = write_runs(walker, part);
    if (!written) return written;
  }
  return access.bytes;
}

base::Result<std::uint64_t> IndependentAccess::run_unlocked(Direction direction,
                                                            const pattern::Access& access,
                                                            const pattern::Summary& summary) {
  const base::Extent span = summary.span;
  const bool one_run = span.length() == access.bytes && summary.pieces <= 1;
  if (one_run && access.memory.contiguous()) return move_one_run(direction, access, span);
  const plan::IndependentPlan plan =
      plan::plan_independent(direction, summary, policy_.layout, policy_.hints);
  const std::uint64_t window = direction == Direction::write ? policy_.hints.ind_wr_buffer_size
                                                             : policy_.hints.ind_rd_buffer_size;
  if (one_run && access.bytes / std::max<std::uint64_t>(summary.memory_pieces, 1) < kSmallPiece)
    return move_windows(direction, access, span, window);
  if (plan.way != plan::Independent::sieve || !may_sieve(direction))
    return move_runs(direction, access, summary);
  ++statistics_.sieved;
  return move_windows(direction, access, span, plan.window == 0 ? window : plan.window);
}

/// True if a write may be sieved: automatic sieving needs all ranks at one gate, and excludes other
/// writers of the file.
bool IndependentAccess::may_sieve(Direction direction) {
  if (direction == Direction::read) return true;
  const bool wanted = policy_.one_node || policy_.hints.romio_ds_write == hints::Choice::enable;
  return wanted && file_.may_modify();
}

base::Result<std::uint64_t> IndependentAccess::move_one_run(Direction direction,
                                                            const pattern::Access& access,
                                                            base::Extent span) {
  const Timer timer(counters_.file_ns);
  const MovedRun run = engine::move_run(context_, policy_, direction, span,
                                        access.buffer + access.memory.true_lower());
  if (run.by_system)
    statistics_.count_transfer(direction, span, *run.by_system, policy_.layout.unit);
  return run.bytes;
}

base::Result<std::uint64_t> IndependentAccess::move_runs(Direction direction,
                                                         const pattern::Access& access,
                                                         const pattern::Summary& summary) {
  const PlainPass pass(context_, policy_, direction, summary.span);
  if (!pass.status()) return pass.status().error();
  pattern::Walker walker(access);
  std::vector<std::span<std::byte>> pieces(
      std::clamp<std::size_t>(summary.memory_pieces, 1, kMostPieces));
  std::uint64_t moved = 0;
  while (true) {
    std::size_t used = 0;
    const base::Extent run = walker.next(summary.span, pieces, used);
    if (run.empty()) return moved;
    const Count count = move_vector(direction, run, std::span(pieces).first(used));
    if (!count) return count.error();
    moved += *count;
    if (*count < run.length()) return moved;  // the end of the file
  }
}

base::Result<std::uint64_t> IndependentAccess::move_vector(
    Direction direction, base::Extent run, std::span<const std::span<std::byte>> pieces) {
  if (pieces.size() == 1)
    return direction == Direction::write ? write_extent(run, pieces[0].data())
                                         : read_extent(run, pieces[0].data());
  std::vector<iovec> vector(pieces.size());
  std::ranges::transform(pieces, vector.begin(), [](std::span<std::byte> piece) {
    return iovec{piece.data(), piece.size()};
  });
  const Timer timer(counters_.file_ns);
  if (direction == Direction::read) {
    const Count count = context_.file().read_vector(run.begin, vector);
    if (count) counters_.add_read(*count);
    return count;
  }
  const base::Status status = context_.file().write_vector(run.begin, vector);
  context_.note_change();
  if (!status) return status.error();
  counters_.add_write(run, policy_.layout.unit);
  return run.length();
}

IndependentAccess::Touched IndependentAccess::find_touched(const pattern::Access& access,
                                                           base::Extent window) {
  const std::uint64_t begin = std::max(access.position, access.view.position_of(window.begin));
  const std::uint64_t end =
      std::min(access.position + access.bytes, access.view.position_of(window.end));
  if (begin >= end) return {};
  return {{access.view.offset_of(begin), access.view.offset_of(end - 1) + 1}, end - begin};
}

/// Returns the next window, up to a multiple of `size`, from the first byte of the access in `rest`
/// on.
base::Extent IndependentAccess::find_next_window(const pattern::Access& access, base::Extent rest,
                                                 std::uint64_t size) {
  const std::uint64_t position = std::max(access.position, access.view.position_of(rest.begin));
  if (position >= access.position + access.bytes) return {rest.end, rest.end};
  const std::uint64_t begin = std::max(rest.begin, access.view.offset_of(position));
  return {begin, std::min(rest.end, base::round_down(begin, size) + size)};
}

base::Result<std::uint64_t> IndependentAccess::move_windows(Direction direction,
                                                            const pattern::Access& access,
                                                            base::Extent span,
                                                            std::uint64_t window) {
  const SieveBuffers::Buffer image = context_.sieve_buffers().get(std::min(window, span.length()));
  // In an overlapping file type, positions and offsets do not correspond one to one.
  const bool overlapping = access.view.filetype.overlapping();
  pattern::Walker walker(access);
  std::uint64_t moved = 0;
  for (base::Extent rest = span; !rest.empty();) {
    const base::Extent aligned{rest.begin,
                               std::min(rest.end, base::round_down(rest.begin, window) + window)};
    const base::Extent next = overlapping ? aligned : find_next_window(access, rest, window);
    if (next.empty()) break;
    rest.begin = next.end;
    const Touched touched = overlapping ? Touched{next, 0} : find_touched(access, next);
    const Count count = direction == Direction::write
                            ? write_window(walker, touched, image.data())
                            : read_window(walker, touched.hull, image.data());
    if (!count) return count;
    moved += *count;
    if (!overlapping && *count < touched.bytes) break;  // the end of the file
  }
  return moved;
}

base::Result<std::uint64_t> IndependentAccess::read_window(pattern::Walker& walker,
                                                           base::Extent hull, std::byte* image) {
  const Count count = read_extent(hull, image);
  if (!count) return count.error();
  const Timer timer(counters_.copy_ns);
  return walker.scatter(base::Extent::at(hull.begin, *count), image);
}

base::Result<std::uint64_t> IndependentAccess::write_window(pattern::Walker& walker,
                                                            const Touched& touched,
                                                            std::byte* image) {
  if (touched.bytes == touched.hull.length()) return write_full_window(walker, touched.hull, image);
  {
    exchange::HoleWriter holes(file_, counters_);
    const base::Status begun = holes.begin(touched.hull, image);
    if (begun) {
      counters_.gap_bytes += touched.hull.length() - touched.bytes;
      const std::uint64_t gathered = walker.gather(touched.hull, image, {});
      const base::Status written = holes.write_back(image);
      return written ? Count(gathered) : written.error();
    }
    if (context_.file().capabilities().locks) return begun.error();
  }  // ends the modification, which write_runs would wait for
  return write_runs(walker, touched.hull);
}

base::Result<std::uint64_t> IndependentAccess::write_full_window(pattern::Walker& walker,
                                                                 base::Extent hull,
                                                                 std::byte* image) {
  {
    const Timer timer(counters_.copy_ns);
    walker.gather(hull, image, {});
  }
  const PlainPass pass(context_, policy_, Direction::write, hull);
  if (!pass.status()) return pass.status().error();
  return write_extent(hull, image);
}

/// Writes only this rank's own bytes, for files without locks: bytes read must not be written back.
base::Result<std::uint64_t> IndependentAccess::write_runs(pattern::Walker& walker,
                                                          base::Extent hull) {
  const PlainPass pass(context_, policy_, Direction::write, hull);
  if (!pass.status()) return pass.status().error();
  std::array<std::span<std::byte>, 64> pieces;
  std::uint64_t moved = 0;
  while (true) {
    std::size_t used = 0;
    const base::Extent run = walker.next(hull, pieces, used);
    if (run.empty()) return moved;
    const Count count = move_vector(Direction::write, run, std::span(pieces).first(used));
    if (!count) return count;
    moved += *count;
  }
}

base::Result<std::uint64_t> IndependentAccess::read_extent(base::Extent where, std::byte* to) {
  const Timer timer(counters_.file_ns);
  const Count count = context_.file().read(where.begin, {to, where.length()});
  if (count) counters_.add_read(*count);
  return count;
}

base::Result<std::uint64_t> IndependentAccess::write_extent(base::Extent where,
                                                            const std::byte* from) {
  const base::Status status =
      exchange::write_counted(file_, where.begin, {from, where.length()}, counters_);
  if (!status) return status.error();
  return where.length();
}

base::Status IndependentAccess::verify(const pattern::Access& access, base::Extent span) {
  const std::uint64_t size = policy_.hints.ind_rd_buffer_size;
  const SieveBuffers::Buffer image = context_.sieve_buffers().get(std::min(size, span.length()));
  std::vector<std::byte> expected(std::min(size, span.length()));
  pattern::Walker walker(access);
  for (base::Extent rest = span; !rest.empty();) {
    const base::Extent window{rest.begin,
                              std::min(rest.end, base::round_down(rest.begin, size) + size)};
    rest.begin = window.end;
    const Count count = context_.file().read(window.begin, {image.data(), window.length()});
    if (!count) return count.error();
    std::memset(image.data() + *count, 0, window.length() - *count);
    std::memcpy(expected.data(), image.data(), window.length());
    walker.gather(window, expected.data(), {});
    std::byte* const end = image.data() + window.length();
    const std::byte* const difference = std::mismatch(image.data(), end, expected.data()).first;
    if (difference == end) continue;
    return describe_difference(
        context_.path(), window.begin + static_cast<std::uint64_t>(difference - image.data()));
  }
  return {};
}

}  // namespace pario::engine
