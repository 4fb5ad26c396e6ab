#include "parallel/engine/write_behind.hpp"

#include <algorithm>
#include <memory>

#include "parallel/engine/independent.hpp"

namespace pario::engine {

base::Status write_kept_bytes(FileContext& context, const pattern::Access& access) {
  const std::shared_ptr<const AccessPolicy> policy = context.policy();
  Statistics statistics;
  const auto moved = IndependentAccess(context, *policy, statistics)
                         .run_verified(plan::Direction::write, access, pattern::summarise(access));
  statistics.writes_behind = statistics.transfer.system_writes;
  context.add(statistics);
  if (moved) return {};
  base::Error error = context.complete_error(moved.error(), "write_behind");
  if (!error.detail.empty()) error.detail += "; ";
  error.detail += "an earlier write of these bytes had been kept back";
  return error;
}

void WriteBehind::add(const pattern::Access& access, const pattern::Summary& summary,
                      std::uint64_t bound) {
  const std::scoped_lock lock(mutex_);
  const std::uint64_t memory = bytes_.memory() + KeptBytes::memory_for(summary);
  if (!bytes_.empty() && memory > bound / 2) start_batch();
  if (bytes_.empty()) oldest_ns_ = base::monotonic_ns();
  bytes_.add(access, summary.span);
}

void WriteBehind::start_old(std::uint64_t delay_ns, std::uint64_t now) {
  const std::scoped_lock lock(mutex_);
  if (!bytes_.empty() && oldest_ns_ + delay_ns <= now) start_batch();
}

/// Writes one batch at a time, so that later bytes reach the file later.
void WriteBehind::start_batch() {
  worker_.drain(context_.patience());
  writing_ = bytes_.hull();
  auto batch = std::make_shared<KeptBytes::Batch>(bytes_.take_batch());
  auto task = std::make_shared<Task>([this, batch]() -> base::Result<std::uint64_t> {
    errors_.put_error(write_kept_bytes(context_, batch->access));
    return batch->access.bytes;
  });
  if (!worker_.submit(task)) task->run();
}

void WriteBehind::flush() {
  const std::scoped_lock lock(mutex_);
  const KeptBytes::Batch batch = take_rest();
  if (batch.access.bytes != 0) errors_.put_error(write_kept_bytes(context_, batch.access));
}

KeptBytes::Batch WriteBehind::take_all() {
  const std::scoped_lock lock(mutex_);
  return take_rest();
}

/// Waits for the worker, and returns the bytes that it was not given. With the mutex held.
KeptBytes::Batch WriteBehind::take_rest() {
  worker_.drain(context_.patience());
  writing_ = {};
  return bytes_.empty() ? KeptBytes::Batch{} : bytes_.take_batch();
}

bool WriteBehind::overlaps(base::Extent where) const {
  const std::scoped_lock lock(mutex_);
  return bytes_.overlaps(where) || !base::intersection(writing_, where).empty();
}

std::uint64_t WriteBehind::end() const {
  const std::scoped_lock lock(mutex_);
  return std::max(bytes_.hull().end, writing_.end);
}

}  // namespace pario::engine
