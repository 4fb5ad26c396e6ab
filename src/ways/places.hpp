// Where the next piece is, until the time is over.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace pario::ways {

class Places {
 public:
  /// Of a file of `size` bytes, in steps of `step`; what is less than a step at its end is left out.
  Places(std::uint64_t size, std::uint64_t step, bool random);
  /// From now on `next` has an answer for so many seconds.
  void start(double seconds);
  std::optional<std::uint64_t> next();
  /// How many places `next` has told, and the n-th of them.
  std::uint64_t told() const { return told_; }
  std::uint64_t place(std::uint64_t number) const { return step_ * (order_.empty() ? number : order_[number]); }

 private:
  std::uint64_t step_, count_, told_ = 0;
  std::uint64_t between_;  ///< places that are told without a look at the clock
  std::uint64_t end_ = 0;  ///< of the time, in nanoseconds
  std::vector<std::uint64_t> order_;
};

}  // namespace pario::ways
