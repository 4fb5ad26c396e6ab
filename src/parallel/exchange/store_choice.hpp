// Chooses how to store into windows: through the caches, or with non-temporal stores.
//
// If processors share no cache, a store into a line that another rank has just read fetches the
// line from a distant cache: 2 GB/s instead of 20, while non-temporal stores reach 27 (EPYC, cores
// of two complexes). If they share a cache, non-temporal stores are slower: the reader then fetches
// the line from memory. So each rank measures both during its transfers.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pario::exchange {

/// The choice of one rank for one direction. Used by one thread at a time.
class StoreChoice {
 public:
  /// True if the next window should be stored with non-temporal stores.
  bool use_non_temporal() {
    if (cached_ == 0) return false;
    if (non_temporal_ == 0) return true;
    const bool preferred = kGain * non_temporal_ < cached_;
    if (++windows_ < pause_) return preferred;
    windows_ = 0;
    pause_ = std::min(2 * pause_, kLongestPause);  // the first uses of memory are slow
    return !preferred;
  }

  /// Records the time of one window; windows of few bytes do not count.
  void add_sample(bool non_temporal, std::uint64_t bytes, std::uint64_t ns) {
    if (bytes < kLeastSample) return;
    double& mean = non_temporal ? non_temporal_ : cached_;
    const double rate = static_cast<double>(ns) / static_cast<double>(bytes);
    if (mean == 0) mean = rate;
    mean += (rate - mean) / (rate < mean ? 1 : 32);  // slow samples were mostly interrupted
  }

 private:
  static constexpr std::uint64_t kLeastSample = 16 << 10;
  static constexpr unsigned kLongestPause = 128;  // windows between two trials of the other way
  static constexpr double kGain = 2;  // readers lose a part of the time that the writer gains

  double cached_ = 0, non_temporal_ = 0;  ///< ns per byte; 0: unknown
  unsigned windows_ = 0, pause_ = 1;
};

}  // namespace pario::exchange
