// What a plan is decided on: the summaries of all ranks, put together.
#pragma once

#include <vector>

#include "plan/plan.hpp"

namespace pario::plan {

/// Of the ranks that move bytes.
struct Facts {
  std::uint64_t ranks = 0;
  base::Extent hull = {};   ///< from the first to the last byte anybody touches
  std::uint64_t spans = 0;  ///< lengths of the ranks' own spans added up
  std::uint64_t bytes = 0, pieces = 0, memory_pieces = 0;
  std::uint64_t granule = pattern::kMaxGranule;  ///< of all of them
  std::vector<int> nodes;                        ///< all that have ranks, also idle ones; ascending
  std::uint64_t node_ranks = 1;                  ///< ranks of the largest node, also idle ones

  std::uint64_t average_run() const { return bytes / pieces; }
  /// Bytes that lie between the first and the last byte of somebody: what windows would have to pass over.
  std::uint64_t reach() const { return hull.length() < spans ? hull.length() : spans; }
};
Facts facts_of(const Situation& situation);

/// Every byte of the hull is touched: each rank has one run, and the runs follow each other without a gap.
bool tiled(const Situation& situation);

/// Ranks of different nodes may touch the same aligned `unit` bytes.
bool nodes_share_units(const Situation& situation, std::uint64_t unit);

}  // namespace pario::plan
