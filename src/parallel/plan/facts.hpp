// The facts behind a plan: the summaries of all ranks, added up.
#pragma once

#include <vector>

#include "parallel/plan/plan.hpp"

namespace pario::plan {

/// Sums over the ranks that move bytes.
struct Facts {
  std::uint64_t ranks = 0;
  base::Extent hull = {};   ///< from the first to the last byte of any rank
  std::uint64_t spans = 0;  ///< sum of the lengths of the ranks' own spans
  std::uint64_t bytes = 0, pieces = 0, memory_pieces = 0;
  std::uint64_t granule = pattern::kMaxGranule;  ///< smallest granule of all ranks
  std::vector<int> nodes;        ///< all that have ranks, idle ones included; ascending
  std::uint64_t node_ranks = 1;  ///< ranks of the largest node, idle ones included

  std::uint64_t average_run() const { return bytes / pieces; }
  /// Returns the bytes that windows would have to cover, between the first and the last byte of the
  /// ranks.
  std::uint64_t reach() const { return hull.length() < spans ? hull.length() : spans; }
};
Facts facts_of(const Situation& situation);

/// True if every byte of the hull is touched: each rank has one run, and the runs follow each other
/// without a gap.
bool is_tiled(const Situation& situation);

/// True if ranks of different nodes may touch the same aligned `unit` bytes.
bool nodes_share_units(const Situation& situation, std::uint64_t unit);

}  // namespace pario::plan
