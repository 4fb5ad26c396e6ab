// Ticks: the cheapest clock that is the same on all cores.
#pragma once

#include <cstdint>
#include <ctime>

namespace pario::base {

namespace detail {
extern bool hardware_ticks;  // false: ticks are nanoseconds of CLOCK_MONOTONIC
}

/// Returns a time in nanoseconds; for time stamps of files: since the epoch, negative before it.
constexpr std::int64_t to_nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

inline std::uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t realtime_ns();

/// Returns ticks of the processor's counter (about 10 ns), or nanoseconds if choose_clock()
/// rejected that counter.
inline std::uint64_t ticks() {
  if (detail::hardware_ticks) [[likely]] {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    std::uint64_t value;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#endif
  }
  return monotonic_ns();
}

/// Selects the clock of ticks(): the time stamp counter if it is invariant and the kernel uses it,
/// too. Call once, before ticks().
void choose_clock();

/// A moment on both clocks, exact even if the thread is preempted meanwhile.
struct Anchor {
  std::uint64_t ticks, ns;
};
Anchor anchor();

/// Returns the ticks per second: as reported by the processor, else measured since `begin`; waits
/// until 100 microseconds have passed.
std::uint64_t tick_rate(const Anchor& begin);

}  // namespace pario::base
