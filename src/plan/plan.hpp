// Room plan: decides how accesses become I/O. Pure: the same arguments give the same Plan on every rank, in the simulator and in tests, so
// no rank has to be told. A Plan prints as text (tests/cases/*.case compare it).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "hints/hints.hpp"
#include "layout/layout.hpp"
#include "pattern/pattern.hpp"

namespace pario::plan {

enum class Direction : std::uint8_t { read, write };

/// How a collective call is carried out.
enum class Way : std::uint8_t {
  nothing,  ///< no rank moves a byte
  direct,   ///< every rank for itself: extents are large already, or collective buffering is off
  windows,  ///< through windows of collective buffers
};

/// How an independent access is carried out.
enum class Independent : std::uint8_t {
  contiguous,  ///< one call
  list,        ///< one call per run of the file, memory pieces gathered by the vector
  sieve,       ///< read (and, for writes, write back) sieve windows that hold many runs
};

/// What a window that is not wholly covered gets.
enum class Holes : std::uint8_t {
  none,    ///< cannot have any
  runs,    ///< each run is written by itself
  modify,  ///< read, filled, written back
  choose,  ///< by cost, when its runs are known: see choose_holes()
};

/// The bytes [begin, end) of the file are cut into windows of `window` bytes on multiples of `window`; window w belongs to a node.
/// contiguous: each node owns neighbouring windows; cyclic: windows of one stripe target always belong to the same node.
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
  bool whole = false;         ///< reads: windows are read as they are, without asking who needs what
  std::uint64_t unit = 0;     ///< bytes that belong to one node together (stripe, block); 0: a window
  std::uint32_t targets = 1;  ///< cyclic: targets that units take turns on

  std::uint64_t first_window() const { return span.begin / window; }
  std::uint64_t windows() const { return span.empty() ? 0 : (span.end - 1) / window + 1 - first_window(); }
  base::Extent extent_of(std::uint64_t window_number) const {
    return base::intersection({window_number * window, (window_number + 1) * window}, span);
  }
  /// The node that owns a window (absolute number, from first_window() on).
  int owner(std::uint64_t window_number) const;
  std::string text() const;
  std::string why = {};  ///< the reason, for people and the log
};

/// What is known of all ranks when a collective call begins.
struct Situation {
  Direction direction = Direction::write;
  std::span<const pattern::Summary> ranks;
  std::span<const int> node_of;  ///< by rank
  layout::StripeLayout layout;
};
Plan make_plan(const Situation& situation, const hints::FileHints& hints);

struct IndependentPlan {
  Independent way = Independent::contiguous;
  std::uint64_t window = 0;  ///< sieve window, bytes
  bool lock = false;         ///< the windows of a sieved write must be locked
  std::string why = {};
};
IndependentPlan plan_independent(Direction direction, const pattern::Summary& access, const layout::StripeLayout& layout,
                                 const hints::FileHints& hints);

/// Of a window with `runs` runs and `hole_bytes` not covered: runs or modify, whichever costs less (a request's cost against bytes read
/// and written again).
Holes choose_holes(std::uint64_t runs, std::uint64_t covered_bytes, std::uint64_t hole_bytes, const layout::StripeLayout& layout,
                   const hints::FileHints& hints);

}  // namespace pario::plan
