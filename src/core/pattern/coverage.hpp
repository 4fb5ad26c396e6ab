// Sets bits of a Coverage in bulk.
#pragma once

#include <cstdint>

namespace pario::pattern::detail {

inline constexpr std::uint64_t kAll = ~std::uint64_t{0};

inline std::uint64_t low_bits(std::uint64_t count) {
  return count >= 64 ? kAll : (std::uint64_t{1} << count) - 1;
}

/// Sets bits [bit, bit + length), at least one.
inline void mark_run(std::uint64_t* words, std::uint64_t bit, std::uint64_t length) {
  std::uint64_t* word = words + bit / 64;
  const std::uint64_t shift = bit % 64;
  if (shift + length <= 64) {
    *word |= low_bits(length) << shift;
    return;
  }
  *word++ |= kAll << shift;
  std::uint64_t left = length - (64 - shift);
  for (; left >= 64; left -= 64) *word++ = kAll;
  if (left > 0) *word |= low_bits(left);
}
/// Sets `count` runs of `length` bits (at least 1), `stride` bits apart (at least `length`).
void mark_runs(std::uint64_t* words, std::uint64_t bit, std::uint64_t length, std::uint64_t stride,
               std::uint64_t count);

}  // namespace pario::pattern::detail
