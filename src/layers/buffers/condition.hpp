// A condition variable for static objects.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/base/base.hpp"

namespace pario::buffers {

/// As std::condition_variable, but usable before constructors have run, and in the child of a fork,
/// which constructs it again.
class Condition {
 public:
  /// Sleeps with `lock` released. May return early.
  void wait(std::unique_lock<std::mutex>& lock) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    const std::uint32_t seen = changes_.load(std::memory_order_relaxed);
    lock.unlock();
    base::futex_wait(changes_, seen, kPatienceNs);
    lock.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  /// Wakes all waiting threads after a change made with the mutex held.
  void notify_all() {
    if (waiting_.load(std::memory_order_relaxed) == 0) return;
    changes_.fetch_add(1, std::memory_order_relaxed);
    base::futex_wake(changes_);
  }

 private:
  static constexpr std::uint64_t kPatienceNs = 1'000'000'000;

  base::FutexWord changes_{0};
  std::atomic<std::uint32_t> waiting_{0};
};

}  // namespace pario::buffers
