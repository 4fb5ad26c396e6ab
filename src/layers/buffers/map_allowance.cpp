#include "layers/buffers/map_allowance.hpp"

#include <algorithm>

namespace pario::buffers {

void MapAllowance::add_mapping(const resident_pages::Progress& now, bool is_first) {
  const std::scoped_lock lock(mutex_);
  if (is_first) last_ = now, left_ = 0;
  left_ += kOfMapping;
}

std::uint64_t MapAllowance::take(const resident_pages::Progress& now, std::uint64_t piece,
                                 std::uint64_t most) {
  const std::scoped_lock lock(mutex_);
  add_progress(now);
  const std::uint64_t pieces = std::min(left_ / piece, most);
  left_ -= pieces * piece;
  return pieces;
}

void MapAllowance::give_back(std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  left_ += bytes;
}

// Pages that are unmapped or evicted do not take the bytes back that they have justified.
void MapAllowance::add_progress(const resident_pages::Progress& now) {
  if (now.resident > last_.resident) left_ += kOfTouchedByte * (now.resident - last_.resident);
  if (now.major_faults > last_.major_faults)
    left_ += kOfFault * (now.major_faults - last_.major_faults);
  last_ = now;
}

}  // namespace pario::buffers
