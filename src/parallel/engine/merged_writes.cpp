#include "parallel/engine/merged_writes.hpp"

#include <algorithm>

namespace pario::engine {

bool MergedWrites::fits(std::span<const pattern::Summary> ranks, std::uint64_t bound) const {
  const std::scoped_lock lock(mutex_);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::uint64_t before = sizes_.empty() ? 0 : sizes_[rank];
    if (before + KeptBytes::memory_for(ranks[rank]) > bound / 2) return false;
  }
  return !spans_.overlap_others(ranks);
}

void MergedWrites::add(const pattern::Access& access, base::Extent span,
                       std::span<const pattern::Summary> ranks) {
  const std::scoped_lock lock(mutex_);
  if (access.bytes > 0) own_.add(access, span);
  spans_.add(ranks);
  sizes_.resize(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    sizes_[rank] += KeptBytes::memory_for(ranks[rank]);
    end_ = std::max(end_, ranks[rank].span.end);
  }
}

void MergedWrites::add_own(const KeptBytes::Batch& batch) {
  const std::scoped_lock lock(mutex_);
  own_.add(batch.access, pattern::summarise(batch.access).span);
}

bool MergedWrites::any() const {
  const std::scoped_lock lock(mutex_);
  return !sizes_.empty();
}

bool MergedWrites::overlaps(base::Extent where) const {
  const std::scoped_lock lock(mutex_);
  return own_.overlaps(where);
}

std::uint64_t MergedWrites::end() const {
  const std::scoped_lock lock(mutex_);
  return end_;
}

KeptBytes::Batch MergedWrites::take_all() {
  const std::scoped_lock lock(mutex_);
  sizes_.clear();
  spans_.clear();
  end_ = 0;
  return own_.take_batch();
}

KeptBytes::Batch MergedWrites::take_own() {
  const std::scoped_lock lock(mutex_);
  return own_.take_batch();
}

}  // namespace pario::engine
