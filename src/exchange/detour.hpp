// Room exchange, inside: which of two ways of storing into windows is faster here.
//
// Where processors share no cache, a store into a line that another rank has just read fetches it from afar: 2 GB/s instead of 20, while
// stores past the caches reach 27 (EPYC, cores of two complexes). Where they share one, it is those that cost: the reader then fetches
// the line from memory. So both are measured, in passing.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pario::exchange {

/// The usual way, and past the caches. One rank's and one direction's; one thread at a time.
class Detour {
 public:
  /// The next window goes past the caches.
  bool next() {
    if (usual_ == 0) return false;
    if (detour_ == 0) return true;
    const bool preferred = kGain * detour_ < usual_;
    if (++windows_ < pause_) return preferred;
    windows_ = 0;
    pause_ = std::min(2 * pause_, kLongestPause);  // what is used for the first time is slow
    return !preferred;
  }

  /// What a window took; of little use where only few bytes were stored.
  void took(bool detour, std::uint64_t bytes, std::uint64_t ns) {
    if (bytes < kTelling) return;
    double& mean = detour ? detour_ : usual_;
    const double rate = static_cast<double>(ns) / static_cast<double>(bytes);
    if (mean == 0) mean = rate;
    mean += (rate - mean) / (rate < mean ? 1 : 32);  // who was interrupted tells little
  }

 private:
  static constexpr std::uint64_t kTelling = 16 << 10;
  static constexpr unsigned kLongestPause = 128;  // windows between two looks at the other way
  static constexpr double kGain = 2;              // what is saved at storing is partly lost at fetching

  double usual_ = 0, detour_ = 0;  ///< ns per byte; 0: not known
  unsigned windows_ = 0, pause_ = 1;
};

}  // namespace pario::exchange
