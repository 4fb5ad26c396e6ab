// Locks that signal handlers of the program never wait for.
#pragma once

#include <signal.h>

#include <cstdint>
#include <mutex>

#include "core/base/base.hpp"

namespace pario::buffers {

/// True while this thread blocks all signals by BlockedSignals.
extern constinit thread_local bool are_signals_blocked __attribute__((tls_model("initial-exec")));

/// Blocks all signals of the thread during its lifetime: no handler of the program runs.
class BlockedSignals {
 public:
  BlockedSignals() : outermost_(!are_signals_blocked) {
    if (outermost_) before_ = block();
  }
  ~BlockedSignals() {
    if (outermost_) restore(before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  /// Blocks all signals; returns the mask for restore().
  static std::uint64_t block() {
    const std::uint64_t before = exchange(~std::uint64_t{0});
    are_signals_blocked = true;
    return before;
  }
  static void restore(std::uint64_t mask) {
    are_signals_blocked = false;
    exchange(mask);
  }

 private:
  static std::uint64_t exchange(std::uint64_t mask) {
    std::uint64_t before = 0;
    base::system_call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before, sizeof mask);
    return before;
  }

  bool outermost_;
  std::uint64_t before_ = 0;
};

/// Holds a mutex that a signal handler may need: none runs in this thread meanwhile.
class HandlerSafeLock {
 public:
  explicit HandlerSafeLock(std::mutex& mutex) : lock_(mutex) {}

 private:
  BlockedSignals blocked_;
  std::scoped_lock<std::mutex> lock_;
};

}  // namespace pario::buffers
