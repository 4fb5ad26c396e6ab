#include "core/base/clock.hpp"

#include <string_view>

#include "core/base/system.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace pario::base {

#if defined(__x86_64__) || defined(__aarch64__)
bool detail::hardware_ticks = true;
#else
bool detail::hardware_ticks = false;
#endif

std::uint64_t realtime_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

namespace {

#if defined(__x86_64__)

bool counter_is_invariant() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}

/// True if the kernel uses the counter; it does not on hosts where the counters of the sockets
/// differ.
bool kernel_uses_counter() {
  char text[64];
  const long size = read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                              text, sizeof text);
  const std::string_view name(text, size > 0 ? static_cast<std::size_t>(size) : 0);
  return name.starts_with("tsc") || name.starts_with("kvm-clock") ||
         name.starts_with("hyperv_clocksource_tsc_page");
}

std::uint64_t announced_rate() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0x15, &a, &b, &c, &d) != 0 && a != 0 && b != 0 && c != 0)
    return std::uint64_t{c} * b / a;
  return 0;
}

#elif defined(__aarch64__)

bool counter_is_invariant() { return true; }
bool kernel_uses_counter() { return true; }

std::uint64_t announced_rate() {
  std::uint64_t rate;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(rate));
  return rate;
}

#else

bool counter_is_invariant() { return false; }
bool kernel_uses_counter() { return false; }
std::uint64_t announced_rate() { return 0; }

#endif

std::uint64_t measured_rate(const Anchor& begin) {
  constexpr std::uint64_t kPatience = 100'000;
  Anchor end = anchor();
  while (end.ns - begin.ns < kPatience) end = anchor();
  return (end.ticks - begin.ticks) * 1'000'000'000 / (end.ns - begin.ns);
}

}  // namespace

Anchor anchor() {
  constexpr std::uint64_t kTries = 3;
  Anchor best{};
  for (std::uint64_t i = 0, least = ~std::uint64_t{0}; i < kTries; ++i) {
    const std::uint64_t before = ticks(), ns = monotonic_ns(), between = ticks() - before;
    if (between >= least) continue;
    least = between;
    best = {before + between / 2, ns};
  }
  return best;
}

void choose_clock() {
  const bool suits = counter_is_invariant() && kernel_uses_counter();
  if (detail::hardware_ticks != suits)
    detail::hardware_ticks = suits;  // another thread may read it
}

std::uint64_t tick_rate(const Anchor& begin) {
  if (!detail::hardware_ticks) return 1'000'000'000;
  const std::uint64_t announced = announced_rate();
  return announced != 0 ? announced : measured_rate(begin);
}

}  // namespace pario::base
