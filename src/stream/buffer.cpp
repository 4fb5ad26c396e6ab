#include "stream/buffer.hpp"

#include <algorithm>

namespace pario::stream {

bool Runs::merge(std::uint32_t begin, std::uint32_t end) {
  Run* const all_end = runs_.data() + count_;
  Run* const first = std::lower_bound(runs_.data(), all_end, begin, [](const Run& run, std::uint32_t at) { return run.end < at; });
  Run* const last = std::upper_bound(first, all_end, end, [](std::uint32_t at, const Run& run) { return at < run.begin; });
  auto at = static_cast<std::uint32_t>(first - runs_.data());
  if (first == last) {  // touches none
    if (count_ == kMost) return false;
    insert(at, {begin, end});
    return true;
  }
  set(at, {std::min(begin, first->begin), std::max(end, last[-1].end)});
  const Run* rest = last;
  while (rest != all_end) set(++at, *rest++);
  count_ = at + 1;
  return true;
}

/// There is room for it.
void Runs::insert(std::uint32_t at, Run run) {
  set(count_, at == count_ ? run : runs_[count_ - 1]);
  ++count_;
  in_this_order();
  if (at == count_ - 1) return;
  for (std::uint32_t i = count_ - 2; i > at; --i) set(i, runs_[i - 1]);
  set(at, run);
}

/// At once: never the beginning of one and the end of another.
void Runs::set(std::uint32_t at, Run run) {
  std::atomic_ref(runs_[at]).store(run, std::memory_order_relaxed);
  in_this_order();
}

bool Runs::contains(std::uint32_t begin, std::uint32_t end) const {
  return std::ranges::any_of(all(), [&](const Run& run) { return run.begin <= begin && end <= run.end; });
}

std::uint64_t Runs::bytes() const {
  std::uint64_t sum = 0;
  for (const Run& run : all()) sum += run.end - run.begin;
  return sum;
}

}  // namespace pario::stream
