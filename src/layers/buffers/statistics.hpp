// Counting of calls into Statistics.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/trace/trace.hpp"
#include "layers/buffers/buffers.hpp"

namespace pario::buffers {

/// Counts a call that began at `start` and returned `result`.
inline void count_call(Statistics::Calls& calls, long result, std::uint64_t start) {
  ++calls.calls;
  calls.bytes += result > 0 ? static_cast<std::uint64_t>(result) : 0;
  calls.ticks += trace::ticks() - start;
}

/// Divides the time in which the program is in calls on one file among them (hint `verbose`). Each
/// moment counts once, for the call that ends first after it: the sum never exceeds the wall time,
/// although threads wait in calls at the same time. The file's lock guards it.
class CallClock {
 public:
  void start() {
    if (active_++ == 0) last_ = trace::ticks();
  }
  /// Ends a call; returns its ticks.
  std::uint64_t stop() {
    --active_;
    return take_ticks();
  }
  /// Returns the ticks of a call that began at `start`, before the lock was obtained.
  std::uint64_t stop_late(std::uint64_t start) {
    if (active_ == 0) last_ = std::max(last_, start);
    return take_ticks();
  }

 private:
  std::uint64_t take_ticks() {
    const std::uint64_t begin = last_;
    last_ = trace::ticks();
    return last_ - begin;
  }

  std::uint32_t active_ = 0;
  std::uint64_t last_ = 0;  ///< the ticks up to which all time has been divided
};

/// Counts a call of the program, and times it if the figures of the file are to be printed.
class CallTimer {
 public:
  CallTimer(Statistics::Calls& calls, CallClock& clock, bool timed)
      : calls_(calls), clock_(timed ? &clock : nullptr) {
    if (clock_ != nullptr) [[unlikely]]
      clock_->start();
  }
  ~CallTimer() {
    if (clock_ != nullptr) [[unlikely]]
      calls_.ticks += clock_->stop();
  }
  CallTimer(const CallTimer&) = delete;
  CallTimer& operator=(const CallTimer&) = delete;

  /// Counts the call; an error (negative) is not counted.
  void count(long result) {
    if (result < 0) return;
    ++calls_.calls;
    calls_.bytes += static_cast<std::uint64_t>(result);
  }

 private:
  Statistics::Calls& calls_;
  CallClock* clock_;
};

}  // namespace pario::buffers
