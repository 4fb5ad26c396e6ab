// The pauses of a test's threads, which the machine may stop at any time.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/base.hpp"

namespace pario {

/// The longest time between two steps of any thread of a test. Thread-safe.
class Pauses {
 public:
  /// Notes a step of a thread whose last one was at `last`, and sets `last` to the present.
  void note_step(std::uint64_t& last) {
    const std::uint64_t now = base::monotonic_ns(), pause = now - last;
    last = now;
    for (std::uint64_t longest = longest_ns_;
         longest < pause && !longest_ns_.compare_exchange_weak(longest, pause);) {
    }
  }
  std::uint64_t longest_ns() const { return longest_ns_; }

 private:
  std::atomic<std::uint64_t> longest_ns_ = 0;
};

}  // namespace pario
