#include "data/records/permutation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "data/records/philox.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kLargestTable = 1 << 20;  // records, 4 bytes each
constexpr unsigned kRounds = 8;
constexpr std::uint32_t kTables = 1, kNetworks = 2;  // separate streams of random numbers

std::array<std::uint32_t, 2> key_of(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

/// A uniform random number in [0, bound): Lemire, Fast random integer generation in an interval,
/// 2019.
std::uint64_t below(std::uint64_t bound, std::uint32_t which, std::uint32_t stream,
                    std::uint64_t seed) {
  for (std::uint32_t attempt = 0;; ++attempt) {
    const auto words = philox({which, attempt, stream, kTables}, key_of(seed));
    const auto product =
        static_cast<unsigned __int128>(std::uint64_t{words[0]} << 32 | words[1]) * bound;
    if (static_cast<std::uint64_t>(product) >= (0 - bound) % bound)
      return static_cast<std::uint64_t>(product >> 64);
  }
}

}  // namespace

Permutation::Permutation(std::uint64_t count, std::uint64_t seed, std::uint64_t stream, bool table)
    : count_(count), seed_(seed), stream_(stream) {
  const auto bits = static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(count, 2) - 1));
  left_ = bits / 2;
  right_ = bits - left_;
  if (!table || count > kLargestTable) return;
  table_.resize(count);
  std::iota(table_.begin(), table_.end(), 0U);
  for (std::uint64_t i = count; i > 1; --i)
    std::swap(
        table_[i - 1],
        table_[below(i, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(stream), seed)]);
}

std::uint64_t Permutation::at(std::uint64_t position) const {
  if (!table_.empty()) return table_[position];
  do position = encipher(position);
  while (position >= count_);
  return position;
}

std::uint64_t Permutation::encipher(std::uint64_t value) const {
  const std::uint64_t left_mask = (std::uint64_t{1} << left_) - 1,
                      right_mask = (std::uint64_t{1} << right_) - 1;
  std::uint64_t left = value >> right_, right = value & right_mask;
  const auto mixed = [&](std::uint64_t half, std::uint32_t round) -> std::uint64_t {
    const std::uint32_t apart = static_cast<std::uint32_t>(stream_ >> 32) << 2 | kNetworks;
    return philox(
        {static_cast<std::uint32_t>(half), round, static_cast<std::uint32_t>(stream_), apart},
        key_of(seed_))[0];
  };
  for (std::uint32_t round = 0; round < kRounds; round += 2) {
    left ^= mixed(right, round) & left_mask;
    right ^= mixed(left, round + 1) & right_mask;
  }
  return left << right_ | right;
}

}  // namespace pario::records
