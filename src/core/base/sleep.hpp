// Sleeps of the calling thread. A further public header, because few modules sleep.
#pragma once

#include <cstdint>

namespace pario::base {

/// Sleeps for a duration; a signal ends it early.
void sleep_ns(std::uint64_t duration);
/// Sleeps until a moment of monotonic_ns(), and continues after signals.
void sleep_until_ns(std::uint64_t moment);

}  // namespace pario::base
