#include "layers/buffers/file_report.hpp"

namespace pario::buffers {
namespace {

using Counter = std::uint64_t trace::Record::*;

/// Adds the difference to the counter; `before` becomes `now`.
void add_difference(trace::Record* record, Counter counter, std::uint64_t now,
                    std::uint64_t& before) {
  if (now != before) trace::add(record, counter, now - before);
  before = now;
}

struct CallCounters {
  Counter calls, bytes, time;
};

void add_difference(trace::Record* record, const CallCounters& counters,
                    const Statistics::Calls& now, Statistics::Calls& before) {
  add_difference(record, counters.calls, now.calls, before.calls);
  add_difference(record, counters.bytes, now.bytes, before.bytes);
  add_difference(record, counters.time, now.ticks, before.ticks);
}

}  // namespace

void FileReport::start(const FileContext& context, const Origin& origin) {
  context_ = &context;
  origin_ = origin;
  published_ = {};
}

void FileReport::publish(Reason reason) {
  trace::Record* record = origin_.record;
  if (record == nullptr) return;
  using R = trace::Record;
  const Statistics& now = context_->statistics;
  Statistics& before = published_;
  add_difference(record, &R::buffered_read_bytes, now.read.bytes, before.read.bytes);
  add_difference(record, &R::buffered_write_bytes, now.write.bytes, before.write.bytes);
  add_difference(record, {&R::system_reads, &R::system_read_bytes, &R::system_read_time},
                 now.system_read, before.system_read);
  add_difference(record, {&R::system_writes, &R::system_write_bytes, &R::system_write_time},
                 now.system_write, before.system_write);
  add_difference(record, &R::buffers_used, now.buffers, before.buffers);
  add_difference(record, &R::prefetches, now.prefetches, before.prefetches);
  add_difference(record, &R::preflushes, now.preflushes, before.preflushes);
  add_difference(record, &R::wasted_bytes, now.wasted, before.wasted);
  if (context_->windows.lacks_memory()) log_unless_failed(reason);
}

void FileReport::log_outcome(Reason reason) {
  audit::log_outcome(origin_.record, make_outcome(reason), context_->hints);
}

void FileReport::log_unless_failed(Reason reason) {
  if (!audit::has_failure(origin_.record)) log_outcome(reason);
}

audit::Outcome FileReport::make_outcome(Reason reason) const {
  const WindowCache& windows = context_->windows;
  audit::Outcome outcome{.specification = origin_.specification,
                         .reason = reason,
                         .survive_failure = windows.survive_failure()};
  if (windows.lacks_memory())
    outcome.buffers = windows.allocated_count();
  else if (context_->hints.count > windows.count())
    outcome.buffers = windows.count();
  return outcome;
}

}  // namespace pario::buffers
