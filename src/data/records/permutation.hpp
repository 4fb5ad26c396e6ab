// Random orders of numbers.
#pragma once

#include <cstdint>
#include <vector>

namespace pario::records {

/// A random bijection of [0, count). If a table of it is small: a Fisher-Yates shuffle, with all
/// orders equally likely. Else a Feistel network over the next power of two, applied repeatedly
/// until the result is in range (Black, Rogaway: Ciphers with arbitrary finite domains, 2002).
class Permutation {
 public:
  /// `stream`: a different number gives another permutation of the same seed.
  Permutation(std::uint64_t count, std::uint64_t seed, std::uint64_t stream, bool table);
  std::uint64_t at(std::uint64_t position) const;

 private:
  std::uint64_t encipher(std::uint64_t value) const;

  std::uint64_t count_, seed_, stream_;
  unsigned left_ = 0, right_ = 0;  ///< bits
  std::vector<std::uint32_t> table_;
};

}  // namespace pario::records
