#include "core/base/futex.hpp"

#include <linux/futex.h>

#include <cerrno>
#include <climits>
#include <ctime>

#include "core/base/system.hpp"

namespace pario::base {

bool futex_wait(const FutexWord& word, std::uint32_t expected, std::uint64_t timeout_ns) {
  const timespec timeout{static_cast<std::time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  return system_call(SYS_futex, &word, FUTEX_WAIT, expected, &timeout, nullptr, 0) != -ETIMEDOUT;
}

void futex_wake(const FutexWord& word) {
  system_call(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace pario::base
