#include "instruments/ways/places.hpp"

#include <algorithm>

#include "core/base/base.hpp"

namespace pario::ways {
namespace {

constexpr std::uint64_t kMost =
    1 << 20;  ///< random places, one in each part of the file; more take too long to shuffle
constexpr std::uint64_t kUntimed = 1 << 16;  ///< bytes moved between two readings of the clock
/// multiplier of a linear congruential generator
constexpr std::uint64_t kFactor = 6364136223846793005;

/// Maps a random number to 0 ... `end` - 1 by its high bits.
std::uint64_t below(std::uint64_t end, std::uint64_t number) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(end) * number >> 64);
}

}  // namespace

Places::Places(std::uint64_t size, std::uint64_t step, bool random)
    : step_(step), count_(size / step), between_(std::max<std::uint64_t>(kUntimed / step, 1)) {
  if (!random) return;
  std::uint64_t state = 1;
  const auto number = [&] { return state = state * kFactor + 1; };
  const std::uint64_t most = std::min(count_, kMost);
  const auto part = [&, of_all = count_](std::uint64_t i) {
    return of_all / most * i + of_all % most * i / most;
  };
  order_.resize(most);
  for (std::uint64_t i = 0; i < most; ++i)
    order_[i] = part(i) + below(part(i + 1) - part(i), number());
  count_ = most;
  for (std::uint64_t i = 0; i < count_; ++i)
    std::swap(order_[i], order_[i + below(count_ - i, number())]);
}

void Places::start(double seconds) {
  returned_ = 0;
  end_ = base::monotonic_ns() + static_cast<std::uint64_t>(seconds * 1e9);
}

std::optional<std::uint64_t> Places::next() {
  if (returned_ == count_ ||
      (returned_ % between_ == 0 && returned_ > 0 && base::monotonic_ns() >= end_))
    return {};
  return place(returned_++);
}

}  // namespace pario::ways
