#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "instruments/model/model.hpp"

namespace pario::model {
namespace {

std::uint64_t units_of(base::Extent span, std::uint64_t unit) {
  return (span.end - 1) / unit - span.begin / unit + 1;
}

/// Returns the number of requests to targets: one for each unit that a piece touches.
std::uint64_t requests_of(const pattern::Summary& rank, const layout::StripeLayout& layout) {
  if (rank.pieces == 1) return units_of(rank.span, layout.unit);
  return rank.pieces * ((rank.bytes / rank.pieces - 1) / layout.unit + 1);
}

/// Sets the targets of a flow to those of `span`.
void set_targets(Flow& flow, base::Extent span, const layout::StripeLayout& layout) {
  flow.first_target = layout.target_of(span.begin);
  flow.targets = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(units_of(span, layout.unit), layout.targets));
}

/// True if a rank's pieces lie between those of others, so that locks of units change hands at each
/// request.
bool is_interleaved(const plan::Situation& situation) {
  base::Extent hull;
  std::uint64_t spans = 0;
  for (const auto& rank : situation.ranks) {
    hull = base::hull(hull, rank.span);
    spans += rank.span.length();
  }
  return spans > hull.length();
}

/// Returns the lock hand-overs of a rank from its neighbours: one per request if `mixed`, otherwise
/// one for a shared unit at its beginning.
std::uint64_t handovers_of(const pattern::Summary& rank, std::uint64_t requests, bool mixed,
                           const layout::StripeLayout& layout) {
  if (mixed) return requests;
  return rank.span.begin % layout.unit != 0 ? 1 : 0;
}

Flow own_flow(const plan::Situation& situation, std::size_t number, std::uint64_t requests,
              std::uint64_t bytes, bool mixed) {
  const pattern::Summary& rank = situation.ranks[number];
  Flow flow;
  flow.node = static_cast<std::uint32_t>(situation.node_of[number]);
  flow.bytes = bytes;
  flow.requests = requests;
  flow.depth = 1;
  const bool writes = situation.direction == plan::Direction::write;
  flow.handovers = writes ? handovers_of(rank, requests, mixed, situation.layout) : 0;
  set_targets(flow, rank.span, situation.layout);
  return flow;
}

/// The flows of a plan's windows, by node and target. Windows repeat in cycles; only one cycle is
/// walked.
class Windows {
 public:
  Windows(const plan::Plan& plan, const layout::StripeLayout& layout)
      : plan_(plan), layout_(layout), cycle_(cycle()) {
    const std::uint64_t begin = plan.first_window(), end = begin + plan.windows();
    for (std::uint64_t from = begin; from < end;) {
      // The first and the last window may be shorter than the others.
      const std::uint64_t to = from == begin    ? from + 1
                               : from < end - 1 ? find_range_end(from, end - 1)
                                                : end;
      add_range(from, to);
      from = to;
    }
  }
  void add_to(Phase& phase) const {
    for (const auto& [key, flow] : pairs_) phase.flows.push_back(flow);
    for (const auto& [node, bytes] : received_) phase.exchanged = std::max(phase.exchanged, bytes);
  }

 private:
  /// The number of windows after which targets (and owners, if targets determine them) repeat.
  std::uint64_t cycle() const {
    const auto repeats = [&](std::uint64_t bytes) { return bytes / std::gcd(bytes, plan_.window); };
    const std::uint64_t targets = repeats(layout_.unit * layout_.targets);
    return plan_.cyclic
               ? std::lcm(targets,
                          repeats((plan_.unit == 0 ? plan_.window : plan_.unit) * plan_.targets))
               : targets;
  }
  /// Returns the end of the windows from `from` on that repeat in cycles: all, or those of one
  /// node.
  std::uint64_t find_range_end(std::uint64_t from, std::uint64_t end) const {
    if (plan_.cyclic) return end;
    std::uint64_t same = from, other = end;
    while (other - same > 1) {
      const std::uint64_t middle = same + (other - same) / 2;
      (plan_.owner(middle) == plan_.owner(from) ? same : other) = middle;
    }
    return other;
  }
  void add_range(std::uint64_t from, std::uint64_t to) {
    const std::uint64_t times = (to - from) / cycle_;
    for (std::uint64_t w = from; times > 0 && w < from + cycle_; ++w) add(w, times);
    for (std::uint64_t w = from + times * cycle_; w < to; ++w) add(w, 1);
  }
  /// Adds a window: its part on one target is a request there.
  void add(std::uint64_t number, std::uint64_t times) {
    const base::Extent window = plan_.extent_of(number);
    const auto node = static_cast<std::uint32_t>(plan_.owner(number));
    received_[node] += times * window.length();
    for (std::uint64_t at = window.begin; at < window.end;) {
      const std::uint64_t end =
          std::min(window.end, base::round_down(at, layout_.unit) + layout_.unit);
      const std::uint32_t target = layout_.target_of(at);
      Flow& flow = pairs_[{node, target}];
      flow.node = node, flow.first_target = target, flow.ranks = plan_.writers;
      flow.bytes += times * (end - at);
      flow.requests += times;
      at = end;
    }
  }

  const plan::Plan& plan_;
  const layout::StripeLayout& layout_;
  std::uint64_t cycle_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Flow> pairs_ = {};
  std::map<std::uint32_t, std::uint64_t> received_ = {};
};

}  // namespace

Phase phase_of(const plan::Situation& situation, const plan::Plan& plan) {
  Phase phase{.direction = situation.direction};
  if (plan.way == plan::Way::direct) {
    const bool mixed = is_interleaved(situation);
    for (std::size_t number = 0; number < situation.ranks.size(); ++number)
      if (const auto& rank = situation.ranks[number]; rank.bytes > 0)
        phase.flows.push_back(
            own_flow(situation, number, requests_of(rank, situation.layout), rank.bytes, mixed));
  }
  if (plan.way == plan::Way::windows) Windows(plan, situation.layout).add_to(phase);
  return phase;
}

Phase independent_phase(const plan::Situation& situation, const hints::FileHints& hints) {
  Phase phase{.direction = situation.direction};
  const bool mixed = is_interleaved(situation);
  for (std::size_t number = 0; number < situation.ranks.size(); ++number) {
    const pattern::Summary& rank = situation.ranks[number];
    if (rank.bytes == 0) continue;
    const plan::IndependentPlan way =
        plan::plan_independent(situation.direction, rank, situation.layout, hints);
    if (way.way != plan::Independent::sieve) {
      phase.flows.push_back(
          own_flow(situation, number, requests_of(rank, situation.layout), rank.bytes, mixed));
      continue;
    }
    const std::uint64_t windows = (rank.span.length() - 1) / way.window + 1;
    const std::uint64_t times = situation.direction == plan::Direction::write ? 2 : 1;
    Flow flow = own_flow(situation, number, times * windows, times * rank.span.length(), mixed);
    flow.handovers = std::min(flow.handovers, windows);
    phase.flows.push_back(flow);
  }
  return phase;
}

}  // namespace pario::model
