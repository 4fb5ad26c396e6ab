#include "engine/write_behind.hpp"

#include <algorithm>
#include <utility>

namespace pario::engine {

void WriteBehind::keep(const pattern::Access& access, const pattern::Summary& summary, std::uint64_t bound) {
  const std::scoped_lock lock(mutex_);
  if (!kept_.empty() && kept_.size() + Kept::size_of(summary) > bound / 2) hand_over();
  if (kept_.empty()) since_ = base::monotonic_ns();
  kept_.add(access, summary.span);
}

void WriteBehind::hand_over_after(std::uint64_t delay, std::uint64_t now) {
  const std::scoped_lock lock(mutex_);
  if (!kept_.empty() && since_ + delay <= now) hand_over();
}

/// One batch at a time, so that later bytes are written later.
void WriteBehind::hand_over() {
  worker_.drain(patience_);
  writing_ = kept_.hull();
  auto task = std::make_shared<Task>([this, batch = std::make_shared<Kept::Batch>(kept_.take())]() -> base::Result<std::uint64_t> {
    carry_out(*batch);
    return batch->access.bytes;
  });
  if (!worker_.submit(task)) task->run();
}

void WriteBehind::flush() {
  const std::scoped_lock lock(mutex_);
  worker_.drain(patience_);
  writing_ = {};
  if (!kept_.empty()) carry_out(kept_.take());
}

bool WriteBehind::touches(base::Extent where) const {
  const std::scoped_lock lock(mutex_);
  return kept_.touches(where) || !base::intersection(writing_, where).empty();
}

std::uint64_t WriteBehind::end() const {
  const std::scoped_lock lock(mutex_);
  return std::max(kept_.hull().end, writing_.end);
}

void WriteBehind::carry_out(const Kept::Batch& batch) { leave_error(write_(batch.access)); }

base::Status WriteBehind::take_error() {
  if (!failed_.load(std::memory_order_acquire)) return {};
  const std::scoped_lock lock(error_mutex_);
  failed_ = false;
  return std::exchange(error_, {});
}

void WriteBehind::leave_error(const base::Status& status) {
  if (status) return;
  const std::scoped_lock lock(error_mutex_);
  if (error_) error_ = status;
  failed_ = true;
}

}  // namespace pario::engine
