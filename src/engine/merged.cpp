#include "engine/merged.hpp"

#include <algorithm>

namespace pario::engine {

bool Merged::fits(std::span<const pattern::Summary> ranks, std::uint64_t bound) const {
  const std::scoped_lock lock(mutex_);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::uint64_t before = sizes_.empty() ? 0 : sizes_[rank];
    if (before + Kept::size_of(ranks[rank]) > bound / 2) return false;
  }
  return true;
}

void Merged::add(const pattern::Access& access, base::Extent span, std::span<const pattern::Summary> ranks) {
  const std::scoped_lock lock(mutex_);
  if (access.bytes > 0) mine_.add(access, span);
  sizes_.resize(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    sizes_[rank] += Kept::size_of(ranks[rank]);
    end_ = std::max(end_, ranks[rank].span.end);
  }
}

bool Merged::any() const {
  const std::scoped_lock lock(mutex_);
  return !sizes_.empty();
}

bool Merged::touches(base::Extent where) const {
  const std::scoped_lock lock(mutex_);
  return mine_.touches(where);
}

std::uint64_t Merged::end() const {
  const std::scoped_lock lock(mutex_);
  return end_;
}

Kept::Batch Merged::take() {
  const std::scoped_lock lock(mutex_);
  sizes_.clear();
  end_ = 0;
  return mine_.take();
}

Kept::Batch Merged::take_mine() {
  const std::scoped_lock lock(mutex_);
  return mine_.take();
}

}  // namespace pario::engine
