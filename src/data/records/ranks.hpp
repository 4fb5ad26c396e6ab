// Processes that do one thing together, on one node or on several that share a file system.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/base.hpp"

namespace pario::records {

/// Gives `mine` to all, and returns what each of them gave, in the order of ranks. Collective; on
/// the caller's thread.
using Gather = std::function<base::Result<std::vector<std::string>>(const std::string& mine)>;

struct Ranks {
  unsigned rank = 0, count = 1;
  Gather gather = {};  ///< not asked of one alone

  bool alone() const { return count == 1; }
  bool first() const { return rank == 0; }
  /// What each of them gave, where all are well; the Error of the first that is not, on all of
  /// them. Collective.
  base::Result<std::vector<std::vector<std::uint64_t>>> exchange(
      const base::Status& mine, const std::vector<std::uint64_t>& numbers) const;
  /// All are well. Collective.
  base::Status together(const base::Status& mine) const { return exchange(mine, {}).status(); }
};

}  // namespace pario::records
