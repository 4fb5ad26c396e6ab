#include "core/base/sleep.hpp"

#include <cerrno>
#include <ctime>

#include "core/base/system.hpp"

namespace pario::base {
namespace {

timespec to_timespec(std::uint64_t nanoseconds) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  return {static_cast<time_t>(nanoseconds / kSecond), static_cast<long>(nanoseconds % kSecond)};
}

}  // namespace

void sleep_ns(std::uint64_t duration) {
  const timespec time = to_timespec(duration);
  system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
}

void sleep_until_ns(std::uint64_t moment) {
  const timespec time = to_timespec(moment);
  while (system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == -EINTR)
    continue;
}

}  // namespace pario::base
