// Module plan: decides how accesses become I/O: aggregators, file domains, windows, sieving.
//
// Pure: the same arguments give the same Plan on every rank, in the model and in tests, so that
// ranks need no messages to agree. A Plan prints as text, which tests/cases/*.case compare.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "core/hints/hints.hpp"
#include "core/layout/layout.hpp"
#include "core/pattern/pattern.hpp"

namespace pario::plan {

enum class Direction : std::uint8_t { read, write };

/// The way in which a collective call moves its bytes.
enum class Way : std::uint8_t {
  nothing,  ///< no rank moves a byte
  direct,   ///< every rank accesses the file: extents are large, or collective buffering is off
  windows,  ///< through windows of collective buffers
};

/// The way in which an independent access moves its bytes.
enum class Independent : std::uint8_t {
  contiguous,  ///< one call
  list,        ///< one call per run of the file; the vector gathers pieces of memory
  sieve,       ///< reads (and for writes, writes back) sieve windows that hold many runs
};

/// The way in which a window with holes is written.
enum class Holes : std::uint8_t {
  none,    ///< holes are impossible
  runs,    ///< one write per run
  modify,  ///< read-modify-write of the window
  choose,  ///< by cost, when its runs are known: see choose_holes()
};

/// The decisions about one collective call. The bytes [begin, end) of the file are divided into
/// windows of `window` bytes at multiples of `window`; each window belongs to a node. contiguous:
/// each node owns neighbouring windows; cyclic: windows of one stripe target always belong to the
/// same node.
struct Plan {
  Way way = Way::nothing;
  Direction direction = Direction::write;
  base::Extent span = {};
  std::uint64_t window = 0;
  std::uint32_t slots = 0;       ///< windows of a node that are in memory at a time
  std::vector<int> aggregators;  ///< nodes that own windows, ascending
  std::uint32_t writers = 1;     ///< ranks of a node that may write at the same time
  bool cyclic = false;
  std::uint64_t granule = 1;
  Holes holes = Holes::none;
  /// Cost of a request of the file, as bytes moved in the same time; for choose_holes().
  std::uint64_t request_bytes = 0;
  bool whole = false;  ///< reads: windows are read whole, not only the needed runs
  /// Writes on one node: ranks fill a window in their order, so that of bytes that several ranks
  /// write those of the highest rank stay, in all windows.
  bool in_order = false;
  std::uint64_t unit = 0;  ///< bytes that belong to one node together (stripe, block); 0: a window
  std::uint32_t targets = 1;  ///< cyclic: the number of targets that units alternate between

  std::uint64_t first_window() const { return span.begin / window; }
  std::uint64_t windows() const {
    return span.empty() ? 0 : (span.end - 1) / window + 1 - first_window();
  }
  base::Extent extent_of(std::uint64_t window_number) const {
    return base::intersection({window_number * window, (window_number + 1) * window}, span);
  }
  /// Returns the node that owns a window (absolute number, from first_window() on).
  int owner(std::uint64_t window_number) const;
  std::string text() const;
  std::string why = {};  ///< the reason for the decisions, for users and the log
};

/// The facts about all ranks when a collective call begins.
struct Situation {
  Direction direction = Direction::write;
  std::span<const pattern::Summary> ranks;
  std::span<const int> node_of;  ///< by rank
  layout::StripeLayout layout;
};
Plan make_plan(const Situation& situation, const hints::FileHints& hints);

/// True if it pays to keep a collective write in memory and to exchange it together with later
/// ones: its bytes are copied, and sorted, in less time than its own exchange takes.
bool merging_pays(const Situation& situation, const hints::FileHints& hints);

struct IndependentPlan {
  Independent way = Independent::contiguous;
  std::uint64_t window = 0;  ///< sieve window, bytes
  bool lock = false;         ///< the windows of a sieved write need locks
  std::string why = {};
};
IndependentPlan plan_independent(Direction direction, const pattern::Summary& access,
                                 const layout::StripeLayout& layout, const hints::FileHints& hints);

/// Decides how to write a window with `runs` covered runs and `hole_bytes` between them, as
/// plan.holes says; `choose`: the cheaper of runs and modify, where a request costs
/// plan.request_bytes.
Holes choose_holes(const Plan& plan, std::uint64_t runs, std::uint64_t covered_bytes,
                   std::uint64_t hole_bytes);

}  // namespace pario::plan
