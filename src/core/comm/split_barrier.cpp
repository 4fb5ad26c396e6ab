#include "core/comm/comm.hpp"

namespace pario::comm {
namespace {

constexpr std::uint64_t kWords = 2;  // successive meetings count in different words
constexpr std::size_t kApart = SplitBarrier::kBytes / kWords;

// Counts wrap around.
bool is_reached(std::uint32_t count, std::uint32_t wanted) {
  return count - wanted < std::uint32_t{1} << 31;
}

}  // namespace

base::FutexWord& SplitBarrier::word(std::uint64_t meeting) const {
  return *reinterpret_cast<base::FutexWord*>(memory_ + meeting % kWords * kApart);
}

/// The count of a meeting's word once all members have arrived.
std::uint32_t SplitBarrier::arrivals(std::uint64_t meeting) const {
  return static_cast<std::uint32_t>((meeting + kWords - 1) / kWords) * members_;
}

std::uint64_t SplitBarrier::arrive() {
  const std::uint64_t meeting = ++meetings_;
  base::FutexWord& count = word(meeting);
  if (count.fetch_add(1, std::memory_order_acq_rel) + 1 == arrivals(meeting))
    base::futex_wake(count);
  return meeting;
}

base::Status SplitBarrier::wait(std::uint64_t meeting, const Patience& patience) const {
  const base::FutexWord& count = word(meeting);
  const std::uint32_t wanted = arrivals(meeting);
  return wait_until(
      count, [&] { return is_reached(count.load(std::memory_order_acquire), wanted); }, patience);
}

}  // namespace pario::comm
