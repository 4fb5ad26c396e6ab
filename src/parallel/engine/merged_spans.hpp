// Which ranks have written where in merged collective writes.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "core/pattern/pattern.hpp"

namespace pario::engine {

/// Finds calls whose bytes may overlap those of another rank in an earlier call: written together,
/// the earlier bytes could stay. Knows the spans of the ranks only, and after many calls less than
/// these; may thus find too many calls, but none too few. All ranks that add the same calls get the
/// same answers. Not thread-safe.
class MergedSpans {
 public:
  /// `ranks`: the summaries of a call, of all ranks.
  bool overlap_others(std::span<const pattern::Summary> ranks) const;
  /// Adds a call that does not overlap others.
  void add(std::span<const pattern::Summary> ranks);
  void clear() { owned_.clear(); }

 private:
  static constexpr int kSeveral = -1;
  /// The end of an extent, and the rank that has written in it, or kSeveral.
  struct Owned {
    std::uint64_t end;
    int owner;
  };

  void add_extent(base::Extent where, int owner);
  void join_neighbours();

  std::map<std::uint64_t, Owned> owned_;  // by their begins; disjoint
};

}  // namespace pario::engine
