// The counters of the transfers of a file, and the timer that adds to them.
#pragma once

#include <cstdint>

#include "core/base/base.hpp"

namespace pario::exchange {

/// Counters and times of one rank; the members are the rows of counters.def. Not thread-safe.
struct Counters {
#define PARIO_TIMER(member, name) std::uint64_t member = 0;
#define PARIO_COUNTER(name) std::uint64_t name = 0;
#define PARIO_AVERAGE(name, sum, count)
#include "parallel/exchange/counters.def"
#undef PARIO_TIMER
#undef PARIO_COUNTER
#undef PARIO_AVERAGE

  Counters& operator+=(const Counters& other);
  /// Counts a successful write; `unit`: bytes of a stripe or lock unit.
  void add_write(base::Extent where, std::uint64_t unit) {
    ++system_writes;
    system_write_bytes += where.length();
    stripe_sized_writes += where.begin % unit == 0 && where.end % unit == 0 ? 1 : 0;
  }
  void add_read(std::uint64_t bytes) {
    ++system_reads;
    system_read_bytes += bytes;
  }
};

/// Returns nanoseconds per tick. The first call chooses the clock of base::ticks(), and may take
/// 100 microseconds.
inline double ns_per_tick() {
  static const double value = [] {
    base::choose_clock();
    return 1e9 / static_cast<double>(base::tick_rate(base::anchor()));
  }();
  return value;
}

/// Measures the time since its construction, at about 10 ns per reading.
class Stopwatch {
 public:
  Stopwatch() : ns_per_tick_(ns_per_tick()), begin_(base::ticks()) {}
  std::uint64_t elapsed_ns() const {
    return static_cast<std::uint64_t>(static_cast<double>(base::ticks() - begin_) * ns_per_tick_);
  }

 private:
  double ns_per_tick_;
  std::uint64_t begin_;
};

/// Adds the nanoseconds of its lifetime to a counter.
class Timer {
 public:
  explicit Timer(std::uint64_t& sum_ns) : sum_ns_(sum_ns) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { sum_ns_ += watch_.elapsed_ns(); }

 private:
  std::uint64_t& sum_ns_;
  Stopwatch watch_;
};

}  // namespace pario::exchange
