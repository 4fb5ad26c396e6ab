#include "ways/places.hpp"

#include <algorithm>

#include "base/base.hpp"

namespace pario::ways {
namespace {

constexpr std::uint64_t kMost = 1 << 20;                ///< random places, one of each part of the file; more take too long to shuffle
constexpr std::uint64_t kUnwatched = 1 << 16;           ///< bytes that are moved without a look at the clock
constexpr std::uint64_t kFactor = 6364136223846793005;  ///< of a linear congruential generator

/// The high bits of a random number as one from 0 to `end` - 1.
std::uint64_t below(std::uint64_t end, std::uint64_t number) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(end) * number >> 64);
}

}  // namespace

Places::Places(std::uint64_t size, std::uint64_t step, bool random)
    : step_(step), count_(size / step), between_(std::max<std::uint64_t>(kUnwatched / step, 1)) {
  if (!random) return;
  std::uint64_t state = 1;
  const auto number = [&] { return state = state * kFactor + 1; };
  const std::uint64_t most = std::min(count_, kMost);
  const auto part = [&, of_all = count_](std::uint64_t i) { return of_all / most * i + of_all % most * i / most; };
  order_.resize(most);
  for (std::uint64_t i = 0; i < most; ++i) order_[i] = part(i) + below(part(i + 1) - part(i), number());
  count_ = most;
  for (std::uint64_t i = 0; i < count_; ++i) std::swap(order_[i], order_[i + below(count_ - i, number())]);
}

void Places::start(double seconds) {
  told_ = 0;
  end_ = base::monotonic_ns() + static_cast<std::uint64_t>(seconds * 1e9);
}

std::optional<std::uint64_t> Places::next() {
  if (told_ == count_ || (told_ % between_ == 0 && told_ > 0 && base::monotonic_ns() >= end_)) return {};
  return place(told_++);
}

}  // namespace pario::ways
