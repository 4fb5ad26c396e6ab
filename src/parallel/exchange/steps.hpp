// The order in which the windows of a plan are filled, and the participating ranks. Pure: all ranks
// compute the same order without messages.
//
// Windows alternate between aggregators, so that all are busy. The order is the same on all nodes,
// and every node handles its windows in that order: the first unfinished window of all can
// therefore always be finished, with rings of any size.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/base.hpp"
#include "core/comm/comm.hpp"
#include "parallel/plan/plan.hpp"

namespace pario::exchange {

/// Enumerates the windows of a plan that any of the spans touches.
class WindowOrder {
 public:
  WindowOrder(const plan::Plan& plan, std::span<const base::Extent> spans);
  std::optional<std::uint64_t> next();

 private:
  struct Lane {
    std::uint64_t at, end;
    std::size_t run = 0;  ///< index into runs_
  };
  void add_lanes(const plan::Plan& plan);
  bool skip_untouched(Lane& lane) const;

  std::vector<base::Extent> runs_;  ///< of window numbers
  std::vector<Lane> lanes_;
  std::size_t turn_ = 0;
};

/// The work of a node on one window.
struct Step {
  std::uint64_t index = 0;  ///< in the order of all windows
  std::uint64_t window = 0;
  base::Extent extent = {};
  int owner = 0;              ///< node
  std::uint32_t slot = 0;     ///< of this node's ring
  std::uint32_t use = 0;      ///< value of Slot::turn while the slot belongs to this window
  std::uint32_t locals = 0;   ///< ranks of this node that touch it
  std::uint32_t sources = 0;  ///< on the owner: other nodes that touch it
  std::uint32_t parties() const { return locals + sources; }
};

/// Enumerates the steps of one node.
class Steps {
 public:
  /// `spans` by rank, empty ones touch nothing. `uses` (by slot) advances with each step.
  Steps(const plan::Plan& plan, std::span<const base::Extent> spans, const comm::Topology& topology,
        int node, std::span<std::uint32_t> uses);
  std::optional<Step> next();

  bool touches(int rank, base::Extent extent) const {
    return !base::intersection(spans_[static_cast<std::size_t>(rank)], extent).empty();
  }
  bool node_touches(int node, base::Extent extent) const;
  std::vector<int> sources(const Step& step) const;
  /// The rank of `node` that sends or receives for window number `index` of the order.
  int message_rank(int node, std::uint64_t index) const;

 private:
  const plan::Plan& plan_;
  std::span<const base::Extent> spans_;
  const comm::Topology& topology_;
  int node_;
  std::span<std::uint32_t> uses_;
  std::vector<base::Extent> hulls_;  ///< by node
  WindowOrder order_;
  std::uint64_t index_ = 0, taken_ = 0;
};

}  // namespace pario::exchange
