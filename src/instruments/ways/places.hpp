// The sequence of offsets of the pieces, until the time has passed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace pario::ways {

class Places {
 public:
  /// Creates places in a file of `size` bytes, `step` apart; skips a shorter rest at the end.
  Places(std::uint64_t size, std::uint64_t step, bool random);
  /// Starts the time: next() returns places for `seconds`.
  void start(double seconds);
  std::optional<std::uint64_t> next();
  /// The number of places that next() has returned, and the n-th of them.
  std::uint64_t returned_count() const { return returned_; }
  std::uint64_t place(std::uint64_t number) const {
    return step_ * (order_.empty() ? number : order_[number]);
  }

 private:
  std::uint64_t step_, count_, returned_ = 0;
  std::uint64_t between_;  ///< places between two readings of the clock
  std::uint64_t end_ = 0;  ///< the end of the measurement, in nanoseconds
  std::vector<std::uint64_t> order_;
};

}  // namespace pario::ways
