#include "core/base/spinlock.hpp"

namespace pario::base {

void wait_for_zero(std::uint64_t& word) {
  constexpr int kPauses = 100;
  for (int i = 0; std::atomic_ref(word).load(std::memory_order_relaxed) != 0; ++i) {
    if (i < kPauses)
      pause_cpu();
    else
      sched_yield();
  }
}

}  // namespace pario::base
