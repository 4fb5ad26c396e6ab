// Processes that work together, on one node or on several that share a file system.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/base.hpp"

namespace pario::records {

/// Sends `mine` to all ranks and returns the texts of all, in the order of ranks. Collective; runs
/// on the caller's thread.
using Gather = std::function<base::Result<std::vector<std::string>>(const std::string& mine)>;

struct Ranks {
  unsigned rank = 0, count = 1;
  Gather gather = {};  ///< not called if there is one rank

  bool alone() const { return count == 1; }
  bool first() const { return rank == 0; }
  /// This rank's part of `whole` bytes, records or other units: parts are contiguous, in the order
  /// of ranks, and differ by one unit at most.
  base::Extent share_of(std::uint64_t whole) const;
  /// Returns the numbers of all ranks; if `mine` of a rank is an Error, the first one on all ranks.
  /// Collective.
  base::Result<std::vector<std::vector<std::uint64_t>>> exchange(
      const base::Status& mine, const std::vector<std::uint64_t>& numbers) const;
  /// Returns the first Error of any rank on all ranks. Collective.
  base::Status together(const base::Status& mine) const { return exchange(mine, {}).status(); }
};

}  // namespace pario::records
