// Random orders of numbers.
#pragma once

#include <cstdint>
#include <vector>

namespace pario::records {

/// A random bijection of [0, count): by the shuffle of Fisher and Yates where a table of it is
/// small, all orders equally likely; else a Feistel network over the next power of two, walked
/// until it is within (Black, Rogaway: Ciphers with arbitrary finite domains, 2002).
class Permutation {
 public:
  /// `stream` tells permutations of one seed apart.
  Permutation(std::uint64_t count, std::uint64_t seed, std::uint64_t stream, bool table);
  std::uint64_t at(std::uint64_t position) const;

 private:
  std::uint64_t encipher(std::uint64_t value) const;

  std::uint64_t count_, seed_, stream_;
  unsigned left_ = 0, right_ = 0;  ///< bits
  std::vector<std::uint32_t> table_;
};

}  // namespace pario::records
