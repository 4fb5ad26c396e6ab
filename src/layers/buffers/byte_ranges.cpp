#include "layers/buffers/byte_ranges.hpp"

#include <algorithm>

namespace pario::buffers {

bool ByteRanges::merge(std::uint32_t begin, std::uint32_t end) {
  Range* const all_end = ranges_.data() + count_;
  const auto ends_before = [](const Range& range, std::uint32_t at) { return range.end < at; };
  const auto begins_after = [](std::uint32_t at, const Range& range) { return at < range.begin; };
  Range* const first = std::lower_bound(ranges_.data(), all_end, begin, ends_before);
  Range* const last = std::upper_bound(first, all_end, end, begins_after);
  auto index = static_cast<std::uint32_t>(first - ranges_.data());
  if (first == last) {  // adjacent to none
    if (count_ == kMost) return false;
    insert(index, {begin, end});
    return true;
  }
  set(index, {std::min(begin, first->begin), std::max(end, last[-1].end)});
  const Range* rest = last;
  while (rest != all_end) set(++index, *rest++);
  count_ = index + 1;
  return true;
}

/// Inserts a range; the caller has checked that there is space.
void ByteRanges::insert(std::uint32_t index, Range range) {
  set(count_, index == count_ ? range : ranges_[count_ - 1]);
  ++count_;
  signal_fence();
  if (index == count_ - 1) return;
  for (std::uint32_t i = count_ - 2; i > index; --i) set(i, ranges_[i - 1]);
  set(index, range);
}

/// Stores both ends in one step, so that a reader never sees the ends of two ranges.
void ByteRanges::set(std::uint32_t index, Range range) {
  std::atomic_ref(ranges_[index]).store(range, std::memory_order_relaxed);
  signal_fence();
}

std::uint64_t ByteRanges::total_bytes() const {
  std::uint64_t sum = 0;
  for (const Range& range : ranges()) sum += range.end - range.begin;
  return sum;
}

}  // namespace pario::buffers
