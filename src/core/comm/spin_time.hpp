// The time for which a wait spins before it sleeps.
#pragma once

#include <cstdint>

#include "core/base/base.hpp"

namespace pario::comm {

/// Adapts to earlier waits: a wait spins for as long as a wake-up costs, until several spins in
/// a row were too short; then the next waits sleep at once. Used by one thread at a time.
class SpinTime {
 public:
  static constexpr std::uint64_t kWakeUpNs = 20'000;  ///< measured between two idle cores
  static constexpr unsigned kMostFailures = 3;
  static constexpr unsigned kPause = 32;  ///< waits without a spin after so many failures

  /// Returns the nanoseconds of the next wait's spin; 0: none. One add_outcome() follows a spin.
  std::uint64_t next_ns() {
    if (pause_ == 0) return kWakeUpNs;
    --pause_;
    return 0;
  }
  /// `succeeded`: the wait ended during the spin.
  void add_outcome(bool succeeded) {
    failures_ = succeeded ? 0 : failures_ + 1;
    if (failures_ < kMostFailures) return;
    failures_ = kMostFailures - 1;  // one spin tries again after the pause
    pause_ = kPause;
  }

 private:
  unsigned failures_ = 0, pause_ = 0;
};

/// Spins until `done()`, `ns` nanoseconds at most. Returns the last `done()`.
template <class Done>
bool spin_until(const Done& done, std::uint64_t ns) {
  constexpr int kTests = 16;  // between two looks at the clock
  const std::uint64_t end = base::monotonic_ns() + ns;
  do {
    for (int i = 0; i < kTests; ++i) {
      if (done()) return true;
      base::pause_cpu();
    }
  } while (base::monotonic_ns() < end);
  return done();
}

}  // namespace pario::comm
