#include "parallel/plan/facts.hpp"

#include <algorithm>

namespace pario::plan {
namespace {

/// The span of a rank, and its node.
struct Placed {
  base::Extent span;
  int node;
  bool single;
};

std::vector<Placed> in_order(const Situation& situation) {
  std::vector<Placed> placed;
  for (std::size_t rank = 0; rank < situation.ranks.size(); ++rank) {
    const auto& access = situation.ranks[rank];
    if (access.bytes > 0)
      placed.push_back({access.span, situation.node_of[rank],
                        access.pieces <= 1 && access.bytes == access.span.length()});
  }
  std::ranges::sort(placed, {}, [](const Placed& one) { return one.span.begin; });
  return placed;
}

void add(Facts& facts, const pattern::Summary& access) {
  if (access.bytes == 0) return;
  ++facts.ranks;
  facts.hull = base::hull(facts.hull, access.span);
  facts.spans += access.span.length();
  facts.bytes += access.bytes;
  facts.pieces += std::max<std::uint64_t>(access.pieces, 1);
  facts.memory_pieces += access.memory_pieces;
  facts.granule = std::min(facts.granule, std::max<std::uint64_t>(access.granule, 1));
}

/// The end of the farthest span walked so far, and that of the farthest span of another node.
class Reach {
 public:
  void add(const Placed& one) {
    if (one.node == far_node_) {
      far_ = std::max(far_, one.span.end);
    } else if (one.span.end > far_) {
      others_ = far_;
      far_ = one.span.end;
      far_node_ = one.node;
    } else {
      others_ = std::max(others_, one.span.end);
    }
  }
  std::uint64_t of_others_than(int node) const { return node == far_node_ ? others_ : far_; }

 private:
  std::uint64_t far_ = 0, others_ = 0;
  int far_node_ = -1;
};

}  // namespace

Facts facts_of(const Situation& situation) {
  Facts facts;
  for (const auto& access : situation.ranks) add(facts, access);
  std::vector<int> by_node(situation.node_of.begin(), situation.node_of.end());
  std::ranges::sort(by_node);
  for (std::size_t first = 0, next = 0; first < by_node.size(); first = next) {
    while (next < by_node.size() && by_node[next] == by_node[first]) ++next;
    facts.nodes.push_back(by_node[first]);
    facts.node_ranks = std::max<std::uint64_t>(facts.node_ranks, next - first);
  }
  return facts;
}

bool is_tiled(const Situation& situation) {
  const auto placed = in_order(situation);
  std::uint64_t end = placed.empty() ? 0 : placed.front().span.begin;
  for (const Placed& one : placed) {
    if (!one.single || one.span.begin > end) return false;
    end = std::max(end, one.span.end);
  }
  return true;
}

bool nodes_share_units(const Situation& situation, std::uint64_t unit) {
  Reach reach;
  for (const Placed& one : in_order(situation)) {
    if (base::round_down(one.span.begin, unit) <
        base::round_up(reach.of_others_than(one.node), unit))
      return true;
    reach.add(one);
  }
  return false;
}

}  // namespace pario::plan
