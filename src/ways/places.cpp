#include "ways/places.hpp"

#include <algorithm>
#include <numeric>

#include "base/base.hpp"

namespace pario::ways {
namespace {

constexpr std::uint64_t kMost = 1 << 20;                ///< random places; more take too long to shuffle
constexpr std::uint64_t kUnwatched = 1 << 16;           ///< bytes that are moved without a look at the clock
constexpr std::uint64_t kFactor = 6364136223846793005;  ///< of a linear congruential generator

}  // namespace

Places::Places(std::uint64_t size, std::uint64_t step, bool random)
    : step_(step), count_(size / step), between_(std::max<std::uint64_t>(kUnwatched / step, 1)) {
  if (!random) return;
  order_.resize(count_);
  std::iota(order_.begin(), order_.end(), 0);
  std::uint64_t state = 1;
  const auto number = [&] { return (state = state * kFactor + 1) >> 32; };
  count_ = std::min(count_, kMost);
  for (std::uint64_t i = 0; i < count_; ++i) std::swap(order_[i], order_[i + number() % (order_.size() - i)]);
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
