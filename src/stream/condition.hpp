// Waiting for what is guarded by a mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/base.hpp"

namespace pario::stream {

/// std::condition_variable for objects that are there before any constructor has run, and that the child of a fork makes anew.
class Condition {
 public:
  /// Lets go of `lock` while it sleeps; may return early.
  void wait(std::unique_lock<std::mutex>& lock) {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    const std::uint32_t seen = changes_.load(std::memory_order_relaxed);
    lock.unlock();
    base::futex_wait(changes_, seen, kPatience);
    lock.lock();
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  /// After a change that was made with the mutex held.
  void notify_all() {
    if (waiting_.load(std::memory_order_relaxed) == 0) return;
    changes_.fetch_add(1, std::memory_order_relaxed);
    base::futex_wake(changes_);
  }

 private:
  static constexpr std::uint64_t kPatience = 1'000'000'000;

  base::FutexWord changes_{0};
  std::atomic<std::uint32_t> waiting_{0};
};

}  // namespace pario::stream
