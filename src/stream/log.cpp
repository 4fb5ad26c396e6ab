// What the log says of one file: its figures in the file's row, and what became of the wish to buffer it.
#include <algorithm>

#include "stream/file.hpp"

namespace pario::stream {
namespace {

using Counter = std::uint64_t trace::Record::*;

/// What has come since `before`, which is then as `now`.
void add_since(trace::Record* record, Counter counter, std::uint64_t now, std::uint64_t& before) {
  if (now != before) trace::add(record, counter, now - before);
  before = now;
}

void add_since(trace::Record* record, Counter calls, Counter bytes, Counter time, const Statistics::Calls& now, Statistics::Calls& before) {
  add_since(record, calls, now.calls, before.calls);
  add_since(record, bytes, now.bytes, before.bytes);
  add_since(record, time, now.ticks, before.ticks);
}

}  // namespace

void File::publish() {
  const Lock lock(*this);
  trace::Record* record = origin_.record;
  if (!lock.held() || record == nullptr) return;
  using R = trace::Record;
  const Statistics& now = statistics_;
  add_since(record, &R::buffered_read_bytes, now.read.bytes, published_.read.bytes);
  add_since(record, &R::buffered_write_bytes, now.write.bytes, published_.write.bytes);
  add_since(record, &R::system_reads, &R::system_read_bytes, &R::system_read_time, now.system_read, published_.system_read);
  add_since(record, &R::system_writes, &R::system_write_bytes, &R::system_write_time, now.system_write, published_.system_write);
  add_since(record, &R::buffers_used, now.buffers, published_.buffers);
  add_since(record, &R::prefetches, now.prefetches, published_.prefetches);
  add_since(record, &R::preflushes, now.preflushes, published_.preflushes);
  add_since(record, &R::wasted_bytes, now.wasted, published_.wasted);
  if (starved_ && !audit::is_troubled(record)) audit::enter(record, outcome(), hints_);
}

audit::Outcome File::outcome() const {
  audit::Outcome outcome{.specification = origin_.specification, .reason = reason_, .lost = lost_};
  const auto has_memory = [](const Buffer& buffer) { return buffer.memory != nullptr; };
  if (starved_)
    outcome.buffers = static_cast<std::uint64_t>(std::ranges::count_if(std::span(buffers_, count_), has_memory));
  else if (hints_.count > count_)
    outcome.buffers = count_;
  return outcome;
}

}  // namespace pario::stream
