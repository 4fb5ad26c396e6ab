// Numbers in as few bytes as possible: seven bits in each, the lowest first; the upper bit is set
// if more bytes follow.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pario::records {

inline constexpr std::size_t kLongestNumber = 10;  // bytes

/// Writes a number; returns the place after it. `At`: std::byte*, or a reverse_iterator of it.
template <class At>
At put_number(At at, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) *at++ = static_cast<std::byte>(number | 0x80);
  *at++ = static_cast<std::byte>(number);
  return at;
}

/// Reads a number, and moves `at` to its end. `At`: const std::byte*, or a reverse_iterator of it.
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
