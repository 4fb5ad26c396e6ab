// Consecutive collective writes, kept in memory and exchanged as one call (hint
// pario_merge_collectives).
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "parallel/engine/kept_bytes.hpp"
#include "parallel/engine/merged_spans.hpp"

namespace pario::engine {

/// One rank's part, and the sizes of the other ranks' parts. any() and fits() return the same on
/// all ranks that made the same calls. Thread-safe.
class MergedWrites {
 public:
  /// True if no rank needs more than `bound` bytes of memory for one more call: half of them for
  /// its bytes, half to sort these, and if the call's bytes cannot overlap those that another rank
  /// has added: exchanged together, or written by each rank on its own, the earlier ones could
  /// stay. `ranks`: the summaries of the call, of all ranks.
  bool fits(std::span<const pattern::Summary> ranks, std::uint64_t bound) const;
  void add(const pattern::Access& access, base::Extent span,
           std::span<const pattern::Summary> ranks);
  bool any() const;

  /// True if this rank's bytes overlap.
  bool overlaps(base::Extent where) const;
  /// The end of the last byte of all ranks.
  std::uint64_t end() const;
  /// Adds bytes of this rank alone to its part; not collective.
  void add_own(const KeptBytes::Batch& batch);
  /// Ends the merging: returns this rank's part of the merged call.
  KeptBytes::Batch take_all();
  /// Returns this rank's bytes early, because the file needs them; its part of the merged call is
  /// then smaller.
  KeptBytes::Batch take_own();

 private:
  mutable std::mutex mutex_;
  KeptBytes own_;
  std::vector<std::uint64_t> sizes_;  // memory of each rank
  MergedSpans spans_;
  std::uint64_t end_ = 0;
};

}  // namespace pario::engine
