// The counters that a call changes: pure functions on a row. Inline, because every traced call runs
// them.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "core/trace/trace.hpp"

namespace pario::trace {

namespace detail {

using Field = std::uint64_t Record::*;

inline constexpr std::uint64_t kSizeBins[] = {
    100, 1'000, 10'000, 100'000, 1'000'000, 4'000'000, 10'000'000, 100'000'000, 1'000'000'000};

/// The counters of one direction of transfers.
struct Direction {
  std::uint64_t id;  // last_op
  Field calls, bytes, end, time, nested_time, nested_calls, consecutive, forward, strided,
      unaligned, sizes, first, last, slowest_time, slowest_size, collective, collective_time, next,
      stride, last_start, async;
};

inline constexpr Direction kRead{
    1,
    &Record::reads,
    &Record::bytes_read,
    &Record::end_read,
    &Record::read_time,
    &Record::nested_read_time,
    &Record::nested_reads,
    &Record::consecutive_reads,
    &Record::forward_reads,
    &Record::strided_reads,
    &Record::unaligned_reads,
    &Record::read_size_0,
    &Record::first_read,
    &Record::last_read,
    &Record::slowest_read_time,
    &Record::slowest_read_size,
    &Record::collective_reads,
    &Record::collective_read_time,
    &Record::next_read,
    &Record::read_stride,
    &Record::last_start_read,
    &Record::async_reads,
};

inline constexpr Direction kWrite{
    2,
    &Record::writes,
    &Record::bytes_written,
    &Record::end_written,
    &Record::write_time,
    &Record::nested_write_time,
    &Record::nested_writes,
    &Record::consecutive_writes,
    &Record::forward_writes,
    &Record::strided_writes,
    &Record::unaligned_writes,
    &Record::write_size_0,
    &Record::first_write,
    &Record::last_write,
    &Record::slowest_write_time,
    &Record::slowest_write_size,
    &Record::collective_writes,
    &Record::collective_write_time,
    &Record::next_write,
    &Record::write_stride,
    &Record::last_start_write,
    &Record::async_writes,
};

static_assert(offsetof(Record, read_size_9) - offsetof(Record, read_size_0) ==
              std::size(kSizeBins) * sizeof(std::uint64_t));
static_assert(offsetof(Record, write_size_9) - offsetof(Record, write_size_0) ==
              std::size(kSizeBins) * sizeof(std::uint64_t));

/// The number of bounds below 2^(n - 1), for sizes of n bits; these sizes include at most one more
/// bound.
inline constexpr auto kBinOfWidth = [] {
  std::array<std::uint8_t, 65> bins{};
  for (std::size_t width = 2; width < bins.size(); ++width)
    bins[width] = static_cast<std::uint8_t>(std::ranges::count_if(
        kSizeBins, [&](auto bound) { return bound < std::uint64_t{1} << (width - 1); }));
  return bins;
}();

inline std::size_t size_bin(std::uint64_t size) {
  const std::size_t bin = kBinOfWidth[static_cast<std::size_t>(std::bit_width(size))];
  return bin + (bin < std::size(kSizeBins) && size > kSizeBins[bin]);
}

inline bool is_unaligned(std::uint64_t offset, std::uint64_t block) {
  if (block == 0) return false;
  return (block & (block - 1)) == 0 ? (offset & (block - 1)) != 0 : offset % block != 0;
}

/// Returns one call's share of the total of a run of calls, without a division for a single call.
inline std::uint64_t of_each(std::uint64_t total, std::uint64_t calls) {
  return calls == 1 ? total : total / calls;
}

/// Counts the second and further calls of a run, each of which begins where the previous one ended.
template <Direction D>
void apply_run(Record& row, std::uint64_t moved, std::uint64_t calls) {
  row.*D.consecutive += calls - 1;
  row.*D.unaligned += row.block_size > 1 ? calls - 1 : 0;
  row.*D.last_start += moved - of_each(moved, calls);
  row.*D.stride = of_each(moved, calls);
}

template <Direction D>
void apply_place(Record& row, std::uint64_t offset, std::uint64_t moved, std::uint64_t calls) {
  const bool first = row.*D.calls == calls;
  const std::uint64_t distance = offset - row.*D.last_start;
  if (!first && offset == row.*D.next)
    ++(row.*D.consecutive);
  else if (!first && distance == row.*D.stride && distance != 0)
    ++(row.*D.strided);
  if (!first && offset > row.*D.next) ++(row.*D.forward);
  row.*D.stride = first ? 0 : distance;
  row.*D.last_start = offset;
  row.*D.next = offset + moved;
  row.*D.end = std::max(row.*D.end, moved == 0 ? 0 : offset + moved);
  row.*D.unaligned += is_unaligned(offset, row.block_size);
  if (calls > 1) [[unlikely]]
    apply_run<D>(row, moved, calls);
}

template <Direction D>
void apply_extremes(Record& row, const Call& call, std::uint64_t duration, std::uint64_t moved) {
  if (row.*D.first == 0 || call.start < row.*D.first) row.*D.first = call.start;
  row.*D.last = std::max(row.*D.last, call.end);
  if (duration > row.*D.slowest_time) {
    row.*D.slowest_time = duration;
    row.*D.slowest_size = moved;
  }
}

/// Counts rare cases: collective calls, calls inside an MPI-IO call, asynchronous requests, files
/// opened with special flags.
template <Direction D>
[[gnu::noinline, gnu::cold]] void apply_circumstances(Record& row, const Call& call, bool nested) {
  const std::uint64_t duration = call.end - call.start;
  if (nested) {
    row.*D.nested_time += duration;
    row.*D.nested_calls += call.calls;
  }
  if ((call.flags & kCollective) != 0) {
    row.*D.collective += call.calls;
    row.*D.collective_time += duration;
  }
  if ((call.flags & kAsync) != 0) row.*D.async += call.calls;
  if ((call.open_flags & O_DIRECT) != 0) row.direct_calls += call.calls;
  if (D.id != kWrite.id) return;
  if ((call.open_flags & O_APPEND) != 0) row.append_writes += call.calls;
  if ((call.open_flags & O_DSYNC) != 0) row.sync_writes += call.calls;  // O_SYNC includes it
}

/// Adds the values of the rows PARIO_COUNTED.
template <Direction D>
void apply_counted(Record& row, const Call& call) {
  constexpr std::uint64_t kReads = kRead.id, kWrites = kWrite.id, kTransfers = kReads | kWrites;
#define PARIO_COUNTER(name, unit, use, meaning)
#define PARIO_COUNTED(name, unit, use, calls, value, meaning) \
  if constexpr (((calls) & D.id) != 0) row.name += static_cast<std::uint64_t>(value);
#include "core/trace/counters.def"
#undef PARIO_COUNTER
}

template <Direction D>
void apply_transfer(Record& row, const Call& call, bool nested) {
  const std::uint64_t duration = call.end - call.start;
  row.*D.calls += call.calls;
  row.*D.time += duration;
  row.switches += row.last_op != D.id && row.last_op != 0;
  row.last_op = D.id;
  if (nested || (call.flags & (kCollective | kAsync)) != 0 ||
      (call.open_flags & (O_DIRECT | O_APPEND | O_DSYNC)) != 0) [[unlikely]]
    apply_circumstances<D>(row, call, nested);
  const auto moved = static_cast<std::uint64_t>(std::max<std::int64_t>(call.result, 0));
  const std::uint64_t size = of_each(moved, call.calls);
  apply_extremes<D>(row, call, of_each(duration, call.calls), size);
  apply_counted<D>(row, call);
  if (call.result < 0) return;
  row.*D.bytes += moved;
  (&(row.*D.sizes))[size_bin(size)] += call.calls;
  if (call.offset != kUnknownOffset && (call.flags & kInView) == 0)
    apply_place<D>(row, call.offset, moved, call.calls);
}

/// The counters of the calls of an operation, of their duration, and of those inside MPI-IO calls.
struct Meta {
  Field count, time, nested;
};

inline constexpr Meta kMeta[] = {
#define PARIO_OP(name, calls, time, nested) {&Record::calls, &Record::time, &Record::nested},
#include "core/trace/calls.def"
};

inline void apply_open(Record& row, const Call& call, bool nested) {
  if (call.result < 0) {
    ++row.failed_opens;
    row.nested_failed_opens += nested;
    return;
  }
  row.nested_opens += nested;
  ++row.opens;
  row.open_flags |= call.open_flags;
  row.collective_opens += (call.flags & kCollective) != 0;
  if (row.first_open == 0 || call.start < row.first_open) row.first_open = call.start;
}

inline void apply_meta(Record& row, const Call& call, bool nested) {
  const std::uint64_t duration = call.end - call.start;
  const Meta& meta = kMeta[static_cast<std::size_t>(call.op)];
  row.*meta.time += duration;
  if (nested) row.nested_other_time += duration;
  row.slowest_meta_time = std::max(row.slowest_meta_time, duration);
  switch (call.op) {
    case Op::open:
      return apply_open(row, call, nested);
    case Op::close:
      row.last_close = std::max(row.last_close, call.end);
      break;
    case Op::seek:
      row.repeated_seeks += call.asked == call.offset && call.offset != kUnknownOffset;
      break;
    case Op::map:
      if (call.asked == 0) return;  // munmap
      row.bytes_mapped += call.result < 0 ? 0 : call.asked;
      break;
    case Op::entry:
      row.entries += call.asked;
      return;
    default:
      break;
  }
  ++(row.*meta.count);
  row.*meta.nested += nested;
}

}  // namespace detail

/// Counts a call in its row. `nested`: the call is inside an MPI-IO call.
inline void apply(Record& row, const Call& call, bool nested) {
  row.failed += call.result < 0;
  switch (call.op) {
    case Op::read:
      return detail::apply_transfer<detail::kRead>(row, call, nested);
    case Op::write:
      return detail::apply_transfer<detail::kWrite>(row, call, nested);
    default:
      return detail::apply_meta(row, call, nested);
  }
}

/// Counts the calls inside a call of a library in the row of the latter.
inline void apply(Record& row, Op op, const InnerCalls& inner) {
  row.inner_reads += inner.reads;
  row.inner_bytes_read += inner.bytes_read;
  row.inner_writes += inner.writes;
  row.inner_bytes_written += inner.bytes_written;
  (op == Op::read    ? row.inner_read_time
   : op == Op::write ? row.inner_write_time
                     : row.inner_other_time) += inner.ticks;
}

/// Counts the submission of an asynchronous request.
inline void apply_submission(Record& row) {
  ++row.in_flight;
  row.queue_depth_sum += row.in_flight;
  row.queue_depth_max = std::max(row.queue_depth_max, row.in_flight);
}

/// Takes a submission back.
inline void apply_withdrawal(Record& row) {
  row.queue_depth_sum -= std::min(row.queue_depth_sum, row.in_flight);
  row.in_flight -= row.in_flight != 0;
}

/// Counts the completion of an asynchronous request, `latency` ticks after its submission.
inline void apply_completion(Record& row, std::uint64_t latency) {
  row.in_flight -= row.in_flight != 0;
  ++row.async_requests;
  row.async_latency += latency;
  row.slowest_async_time = std::max(row.slowest_async_time, latency);
}

/// Returns true if one of the last `calls` reads or writes, of which a row has counted `all`, is to
/// be sampled: the first, second, fourth, ... and every 4096th.
inline bool is_sampled(std::uint64_t all, std::uint64_t calls) {
  return (all & (all - 1)) == 0 || all % 4096 < calls;
}

inline constexpr std::size_t kSampleSize = 256;
/// A sample of the first bytes of a read or write.
struct Sample {
  std::uint64_t bytes, lines;
  bool text, numbers;
};
Sample look_at(std::string_view data);
void apply(Record& row, const Sample& sample, Op op);

}  // namespace pario::trace
