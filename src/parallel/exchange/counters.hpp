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

/// Adds the nanoseconds of its lifetime to a counter.
class Timer {
 public:
  explicit Timer(std::uint64_t& sum_ns) : sum_ns_(sum_ns), begin_(base::monotonic_ns()) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { sum_ns_ += base::monotonic_ns() - begin_; }

 private:
  std::uint64_t& sum_ns_;
  std::uint64_t begin_;
};

}  // namespace pario::exchange
