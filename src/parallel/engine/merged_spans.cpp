#include "parallel/engine/merged_spans.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace pario::engine {
namespace {

/// More extents, and four per rank, are joined.
constexpr std::size_t kMostExtents = 1024;

}  // namespace

bool MergedSpans::overlap_others(std::span<const pattern::Summary> ranks) const {
  if (owned_.empty()) return false;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].bytes == 0) continue;
    const auto [begin, end] = ranks[rank].span;
    auto found = owned_.upper_bound(begin);
    if (found != owned_.begin()) --found;
    for (; found != owned_.end() && found->first < end; ++found)
      if (found->second.end > begin && found->second.owner != static_cast<int>(rank)) return true;
  }
  return false;
}

void MergedSpans::add(std::span<const pattern::Summary> ranks) {
  if (ranks.size() == 1) return;
  std::vector<std::pair<base::Extent, int>> spans;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].bytes > 0) spans.emplace_back(ranks[rank].span, static_cast<int>(rank));
  std::ranges::sort(spans, {}, [](const auto& one) { return one.first.begin; });
  for (std::size_t i = 0; i < spans.size();) {
    auto [where, owner] = spans[i];
    for (++i; i < spans.size() && spans[i].first.begin < where.end; ++i) {
      where.end = std::max(where.end, spans[i].first.end);
      owner = kSeveral;
    }
    add_extent(where, owner);
  }
  if (owned_.size() > kMostExtents + 4 * ranks.size()) join_neighbours();
}

/// Adds an extent, joined with those that it overlaps, and with those of its owner that it touches.
void MergedSpans::add_extent(base::Extent where, int owner) {
  auto next = owned_.upper_bound(where.begin);
  if (next != owned_.begin()) --next;
  while (next != owned_.end() && next->first <= where.end) {
    const base::Extent other{next->first, next->second.end};
    const bool overlaps = !base::intersection(where, other).empty();
    const bool touches = other.end >= where.begin && next->second.owner == owner;
    if (!overlaps && !touches) {
      ++next;
      continue;
    }
    if (next->second.owner != owner) owner = kSeveral;
    where = base::hull(where, other);
    next = owned_.erase(next);
  }
  owned_[where.begin] = {where.end, owner};
}

/// Joins extents that touch each other or, if these are few, all.
void MergedSpans::join_neighbours() {
  const std::size_t before = owned_.size();
  for (auto last = owned_.begin(), next = std::next(last); next != owned_.end();) {
    if (last->second.end < next->first) {
      last = next++;
      continue;
    }
    last->second = {next->second.end, kSeveral};
    next = owned_.erase(next);
  }
  if (owned_.size() <= before / 2) return;
  const base::Extent all{owned_.begin()->first, owned_.rbegin()->second.end};
  owned_.clear();
  owned_[all.begin] = {all.end, kSeveral};
}

}  // namespace pario::engine
