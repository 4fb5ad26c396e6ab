// Numbers in as few bytes as they need: seven bits in each, the least first; the upper bit says
// that more follow.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pario::records {

inline constexpr std::size_t kLongestNumber = 10;  // bytes

/// Returns where the next one goes. `At`: std::byte*, or a reverse_iterator of it.
template <class At>
At put_number(At at, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) *at++ = static_cast<std::byte>(number | 0x80);
  *at++ = static_cast<std::byte>(number);
  return at;
}

/// Moves `at` behind it. `At`: const std::byte*, or a reverse_iterator of it.
template <class At>
std::uint64_t take_number(At& at) {
  std::uint64_t number = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<std::uint64_t>(*at++);
    number |= (byte & 0x7F) << shift;
    if (byte < 0x80) return number;
  }
}

}  // namespace pario::records
