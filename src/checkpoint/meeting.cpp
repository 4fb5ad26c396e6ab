#include "checkpoint/checkpoint.hpp"

namespace pario::checkpoint {
namespace {

/// Counts go round.
bool is_reached(std::uint32_t count, std::uint32_t wanted) { return count - wanted < std::uint32_t{1} << 31; }

}  // namespace

void arrive(base::FutexWord& come, std::uint32_t everyone) {
  if (come.fetch_add(1, std::memory_order_acq_rel) + 1 == everyone) base::futex_wake(come);
}

bool await(const base::FutexWord& come, std::uint32_t everyone, std::uint64_t timeout_ns) {
  const auto begin = base::monotonic_ns();
  std::uint32_t seen = 0;
  while (!is_reached(seen = come.load(std::memory_order_acquire), everyone)) {
    const auto waited = base::monotonic_ns() - begin;
    if (waited >= timeout_ns) return false;
    base::futex_wait(come, seen, timeout_ns - waited);
  }
  return true;
}

}  // namespace pario::checkpoint
