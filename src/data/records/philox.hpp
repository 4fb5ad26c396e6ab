// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3; 2011):
// random numbers without a state.
#pragma once

#include <array>
#include <cstdint>

namespace pario::records {

/// Four random words, a function of counter and key; for each key a bijection of the counter.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0],
                        second = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

/// The keys by which a shuffle sorts records; records of equal keys keep the order of the input.
class ShuffleKeys {
 public:
  /// `bits`: fewer than 64 make keys collide, for tests. `stream`: a different number gives another
  /// shuffle of the same seed.
  explicit ShuffleKeys(std::uint64_t seed, unsigned bits = 64, std::uint32_t stream = 0)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        mask_(~std::uint64_t{0} << (64 - bits)),
        stream_(stream) {}

  /// `identity`: the offset of the record in the whole input.
  std::uint64_t of(std::uint64_t identity) const {
    const auto words = philox({static_cast<std::uint32_t>(identity),
                               static_cast<std::uint32_t>(identity >> 32), stream_, 0},
                              key_);
    return (std::uint64_t{words[0]} << 32 | words[1]) & mask_;
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint64_t mask_;
  std::uint32_t stream_;
};

}  // namespace pario::records
