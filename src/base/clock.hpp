// Ticks: the cheapest clock that is the same on all cores.
#pragma once

#include <cstdint>
#include <ctime>

namespace pario::base {

namespace detail {
extern bool hardware_ticks;  // false: ticks are nanoseconds of CLOCK_MONOTONIC
}

/// Nanoseconds of a time; of a file's time stamp: since the epoch, negative before it.
constexpr std::int64_t to_nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

inline std::uint64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t realtime_ns();

/// Ticks of the processor's counter (about 10 ns), or nanoseconds where choose_clock() found that counter unfit.
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

/// Decides what ticks() reads: the time stamp counter where it is invariant and the kernel itself keeps time by it. Once, before ticks()
/// is relied upon.
void choose_clock();

/// The same moment by both clocks, also where the processor is taken away in between.
struct Anchor {
  std::uint64_t ticks, ns;
};
Anchor anchor();

/// Ticks per second: as the processor announces them, else by what has passed since `begin`; waits until that are 100 microseconds.
std::uint64_t tick_rate(const Anchor& begin);

}  // namespace pario::base
