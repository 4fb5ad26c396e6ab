// Counting of calls into Statistics.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "core/trace/trace.hpp"
#include "layers/buffers/buffers.hpp"

namespace pario::buffers {

inline std::uint64_t bytes_of(std::span<const iovec> pieces) {
  std::uint64_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

/// Counts a call that began at `start` and returned `result`.
inline void count_call(Statistics::Calls& calls, long result, std::uint64_t start) {
  ++calls.calls;
  calls.bytes += result > 0 ? static_cast<std::uint64_t>(result) : 0;
  calls.ticks += trace::ticks() - start;
}

/// Counts and times a call of the program. Of fast calls, which take no longer than two readings of
/// the clock, it times one of 16 and multiplies.
class CallTimer {
 public:
  CallTimer(Statistics::Calls& calls, bool fast)
      : calls_(calls),
        factor_(fast ? kTimedOneOf : 1),
        timed_(calls.calls % factor_ == 0),
        start_(timed_ ? trace::ticks() : 0) {}

  /// Ends the call; an error (negative) is not counted.
  void stop(long result) {
    if (result < 0) return;
    ++calls_.calls;
    calls_.bytes += static_cast<std::uint64_t>(result);
    if (timed_) calls_.ticks += (trace::ticks() - start_) * factor_;
  }

 private:
  static constexpr std::uint64_t kTimedOneOf = 16;

  Statistics::Calls& calls_;
  std::uint64_t factor_;
  bool timed_;
  std::uint64_t start_;
};

}  // namespace pario::buffers
