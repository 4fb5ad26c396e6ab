#include "core/trace/trace.hpp"

#include <algorithm>

#include "core/trace/counters.hpp"
#include "core/trace/state.hpp"

namespace pario::trace {

constinit State state;

namespace {

constinit Process idle_process{};  // result of process() without a log

/// Returns the flags for calls inside MPI or MPI-IO.
std::uint8_t context_flags(const Record& record) {
  const auto& context = detail::context;
  if ((context.mpi | context.mpiio) == 0 ||
      record.layer == static_cast<std::uint64_t>(Layer::mpiio)) [[likely]]
    return 0;
  return context.mpiio != 0 ? kInMpiIo : kInMpi;
}

/// Adds a call on a file to the sums of the library call around it; calls inside MPI-IO, and those
/// of the library itself, are in these already.
[[gnu::noinline, gnu::cold]] void add_to_library(const Record& record, const Call& call,
                                                 std::uint8_t context) {
  if (context != 0 || (call.flags & kAsync) != 0 ||
      record.layer > static_cast<std::uint64_t>(Layer::mpiio))
    return;
  InnerCalls& inner = detail::context.inner;
  inner.ticks += call.end - call.start;
  const auto moved = static_cast<std::uint64_t>(std::max<std::int64_t>(call.result, 0));
  if (call.op == Op::read) {
    inner.reads += call.calls;
    inner.bytes_read += moved;
  } else if (call.op == Op::write) {
    inner.writes += call.calls;
    inner.bytes_written += moved;
  }
}

void count_function(Slot& slot, const Call& call, std::uint64_t bytes) {
  FunctionRow& row = slot.functions()[call.function];
  const std::uint64_t duration = call.end - call.start;
  row.calls += call.calls;
  row.ticks += duration;
  row.bytes += bytes;
  row.longest = std::max(row.longest, call.calls == 1 ? duration : duration / call.calls);
  row.failed += call.result < 0;
}

bool moves_data(Op op) { return op == Op::read || op == Op::write; }

/// Returns the offset of an event; of an open its flags, because the row of the file has only the
/// flags of all opens.
std::uint64_t place_of(const Call& call) {
  return call.op == Op::open ? call.open_flags : call.offset;
}

/// The result of a call, for the function's row and for the event.
struct Outcome {
  std::uint64_t bytes;   ///< moved
  std::uint64_t length;  ///< bytes moved; bytes asked for if the call failed or moves none
  std::uint8_t flags;
};

Outcome outcome_of(const Call& call) {
  if (call.result >= 0 && moves_data(call.op)) [[likely]] {
    const auto moved = static_cast<std::uint64_t>(call.result);
    return {moved, moved, static_cast<std::uint8_t>(moved < call.asked ? kShort : 0)};
  }
  return {0, call.op == Op::seek ? 0 : call.asked,
          static_cast<std::uint8_t>(call.result < 0 ? kFailed : 0)};
}

std::uint32_t microseconds(std::uint64_t ticks) {
  const std::uint64_t per_second = tick_rate();
  return per_second == 0 ? 0
                         : static_cast<std::uint32_t>(static_cast<double>(ticks) * 1e6 /
                                                      static_cast<double>(per_second));
}

/// `file` of the event, `record` of the call site.
void count_in_slot(const Call& call, std::uint32_t file, std::uint32_t record,
                   const Outcome& outcome) {
  Slot* slot = my_slot();
  if (slot == nullptr) return bump(process().lost);
  count_function(*slot, call, outcome.bytes);
  if (state.sites.on()) state.sites.count(*slot, call, record, outcome.bytes);
  if (!state.events.on()) return;
  const std::uint64_t duration = call.end - call.start;
  const std::uint32_t span = call.calls == 1 ? 0 : microseconds(duration);
  state.events.store(*slot, {call.start, duration, place_of(call), outcome.length, file, call.calls,
                             span, call.function, slot->number, outcome.flags});
}

[[gnu::noinline]] void sample(Record& row, const Call& call) {
  const auto size = static_cast<std::size_t>(std::min<std::int64_t>(call.result, kSampleSize));
  const Sample found = look_at({static_cast<const char*>(call.data), size});
  const base::SpinLock lock(row.lock);
  apply(row, found, call.op);
}

void keep_anchor(std::uint64_t now) {
  if (now > std::atomic_ref(state.next_anchor).load(std::memory_order_relaxed)) [[unlikely]]
    refresh_anchor();
}

}  // namespace

bool on() { return std::atomic_ref(state.on).load(std::memory_order_acquire); }

int descriptor() { return state.log.descriptor(); }

Process& process() { return state.process != nullptr ? *state.process : idle_process; }

void detail::lose_call() { bump(process().lost); }

// Flattened: a function call would save and restore the registers once more on the common path.
[[gnu::flatten, gnu::hot]] void count(Record* record, const Call& call) {
  if (!on() || record == nullptr) return;
  const Inside inside;
  const std::uint8_t context = context_flags(*record);
  if (detail::context.library != nullptr) [[unlikely]]
    add_to_library(*record, call, context);
  bool look;
  {
    const base::SpinLock lock(record->lock);
    apply(*record, call, context == kInMpiIo);
    look = call.data != nullptr && call.result > 0 &&
           is_sampled(call.op == Op::read ? record->reads : record->writes, call.calls);
  }
  if (look) sample(*record, call);
  Outcome outcome = outcome_of(call);
  outcome.flags |= call.flags | context;
  const auto row = static_cast<std::uint32_t>(record->row);
  count_in_slot(call, row, row, outcome);
  keep_anchor(call.end);
}

void count_call(const Call& call, std::uint32_t file, std::uint64_t bytes) {
  if (!on()) return;
  const Inside inside;
  if (detail::context.library != nullptr) [[unlikely]]
    detail::context.inner.ticks += call.end - call.start;
  count_in_slot(
      call, file, kNoFile,
      {bytes, bytes, static_cast<std::uint8_t>(call.flags | (call.result < 0 ? kFailed : 0))});
  keep_anchor(call.end);
}

void count_wait(const Call& call) {
  if (!on()) return;
  const Inside inside;
  Slot* slot = my_slot();
  if (slot == nullptr) return bump(process().lost);
  const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(call.result, 0));
  count_function(*slot, call, bytes);
  if (state.sites.on()) state.sites.count(*slot, call, kNoFile, bytes);
  keep_anchor(call.end);
}

void count_untraced(Op op, std::int64_t moved) {
  if (!on()) return;
  Process& row = process();
  const bool reads = op == Op::read;
  bump(reads ? row.untraced_reads : row.untraced_writes);
  if (moved > 0)
    bump(reads ? row.untraced_bytes_read : row.untraced_bytes_written,
         static_cast<std::uint64_t>(moved));
}

void count_message(Op op, std::int64_t moved) {
  if (!on() || moved <= 0) return;
  Process& row = process();
  bump(op == Op::read ? row.bytes_received : row.bytes_sent, static_cast<std::uint64_t>(moved));
}

long read_own_file(const char* path, void* data, std::size_t size) {
  const long got = base::read_file(path, data, size);
  if (got < 0) return got;
  const bool to_end = static_cast<std::size_t>(got) < size;  // one more read finds the end
  bump(process().tracer_reads, to_end ? 2 : 1);
  bump(process().tracer_bytes_read, static_cast<std::uint64_t>(got));
  return got;
}

void begin_request(Record* record) {
  if (!on() || record == nullptr) return;
  const Inside inside;
  const base::SpinLock lock(record->lock);
  apply_submission(*record);
}

void end_request(Record* record, std::uint64_t latency) {
  if (!on() || record == nullptr) return;
  const Inside inside;
  const base::SpinLock lock(record->lock);
  apply_completion(*record, latency);
}

void withdraw_request(Record* record) {
  if (!on() || record == nullptr) return;
  const Inside inside;
  const base::SpinLock lock(record->lock);
  apply_withdrawal(*record);
}

void add_inner(Record* record, Op op, const InnerCalls& inner) {
  if (!on() || record == nullptr) return;
  const Inside inside;
  const base::SpinLock lock(record->lock);
  apply(*record, op, inner);
}

void add(std::uint64_t Process::* fact, std::uint64_t value) {
  if (on()) bump(process().*fact, value);
}

void set(Record* record, std::uint64_t Record::* counter, std::uint64_t value) {
  if (!on() || record == nullptr) return;
  const Inside inside;
  const base::SpinLock lock(record->lock);
  record->*counter = value;
}

void add(Record* record, std::uint64_t Record::* counter, std::uint64_t value) {
  if (!on() || record == nullptr) return;
  const Inside inside;
  const base::SpinLock lock(record->lock);
  record->*counter += value;
}

}  // namespace pario::trace
