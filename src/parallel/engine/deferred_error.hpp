// The error of a delayed write, until a later call on the same file reports it.
#pragma once

#include <atomic>
#include <mutex>
#include <utility>

#include "core/base/base.hpp"

namespace pario::engine {

/// Keeps the first error. Thread-safe; take_error() costs one load if there is none.
class DeferredError {
 public:
  /// Keeps `status` if it is an error and none is kept.
  void put_error(const base::Status& status) {
    if (status) return;
    const std::scoped_lock lock(mutex_);
    if (error_) error_ = status;
    exists_.store(true, std::memory_order_release);
  }
  bool exists() const { return exists_.load(std::memory_order_acquire); }
  /// Returns and clears the error; success if there is none.
  base::Status take_error() {
    if (!exists()) return {};
    const std::scoped_lock lock(mutex_);
    exists_ = false;
    return std::exchange(error_, {});
  }

 private:
  std::atomic<bool> exists_{false};
  std::mutex mutex_;
  base::Status error_;
};

}  // namespace pario::engine
