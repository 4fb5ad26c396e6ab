// Message tags, one per window in flight, because messages of different windows between two ranks
// may arrive in any order.
#pragma once

#include <cstdint>

namespace pario::exchange {

inline constexpr std::uint64_t kTagWindows = 4096;
inline int data_tag(std::uint64_t index) {
  return static_cast<int>(kTagWindows + index % kTagWindows);
}
inline int request_tag(std::uint64_t index) {
  return static_cast<int>(2 * kTagWindows + index % kTagWindows);
}

}  // namespace pario::exchange
