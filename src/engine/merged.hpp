// Consecutive collective writes that are kept back and exchanged as one (hint pario_merge_collectives).
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "engine/kept.hpp"

namespace pario::engine {

/// One rank's part of them, and what it knows of the others'. What any() and fits() say is the same on all ranks where the calls were.
/// Thread-safe.
class Merged {
 public:
  /// Whether no rank would need more than `bound` bytes of memory for one more call: half of them for its bytes, half to sort these.
  bool fits(std::span<const pattern::Summary> ranks, std::uint64_t bound) const;
  /// `ranks` are the summaries of the call, of all ranks.
  void add(const pattern::Access& access, base::Extent span, std::span<const pattern::Summary> ranks);
  bool any() const;

  bool touches(base::Extent where) const;  ///< this rank's
  std::uint64_t end() const;               ///< of the last byte of all ranks
  /// The end of the merging: this rank's part of the one call.
  Kept::Batch take();
  /// Only this rank's bytes, because they are needed in the file; its part of the one call will be the less.
  Kept::Batch take_mine();

 private:
  mutable std::mutex mutex_;
  Kept mine_;
  std::vector<std::uint64_t> sizes_;  // of all ranks
  std::uint64_t end_ = 0;
};

}  // namespace pario::engine
