#include "parallel/exchange/steps.hpp"

#include <algorithm>

namespace pario::exchange {

WindowOrder::WindowOrder(const plan::Plan& plan, std::span<const base::Extent> spans) {
  for (const base::Extent& span : spans) {
    const base::Extent inside = base::intersection(span, plan.span);
    if (!inside.empty())
      runs_.push_back({inside.begin / plan.window, (inside.end - 1) / plan.window + 1});
  }
  std::sort(runs_.begin(), runs_.end(),
            [](const base::Extent& a, const base::Extent& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const base::Extent& run : runs_) {
    if (kept > 0 && run.begin <= runs_[kept - 1].end)
      runs_[kept - 1].end = std::max(runs_[kept - 1].end, run.end);
    else
      runs_[kept++] = run;
  }
  runs_.resize(kept);
  if (!runs_.empty()) add_lanes(plan);
}

void WindowOrder::add_lanes(const plan::Plan& plan) {
  const std::uint64_t end = runs_.back().end;
  if (plan.cyclic || plan.aggregators.size() <= 1) {
    lanes_.push_back({runs_.front().begin, end});
    return;
  }
  for (std::uint64_t begin = runs_.front().begin; begin < end;) {
    const int owner = plan.owner(begin);
    std::uint64_t low = begin + 1, high = end;  // the first window of another aggregator
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (plan.owner(middle) == owner)
        low = middle + 1;
      else
        high = middle;
    }
    lanes_.push_back({begin, low});
    begin = low;
  }
}

// Moves a lane past windows that no rank touches. False: the lane is at its end.
bool WindowOrder::skip_untouched(Lane& lane) const {
  while (lane.run < runs_.size() && runs_[lane.run].end <= lane.at) ++lane.run;
  if (lane.run == runs_.size()) return false;
  lane.at = std::max(lane.at, runs_[lane.run].begin);
  return lane.at < lane.end;
}

std::optional<std::uint64_t> WindowOrder::next() {
  while (!lanes_.empty()) {
    if (turn_ >= lanes_.size()) turn_ = 0;
    Lane& lane = lanes_[turn_];
    if (skip_untouched(lane)) {
      ++turn_;
      return lane.at++;
    }
    lanes_.erase(lanes_.begin() + static_cast<std::ptrdiff_t>(turn_));
  }
  return {};
}

Steps::Steps(const plan::Plan& plan, std::span<const base::Extent> spans,
             const comm::Topology& topology, int node, std::span<std::uint32_t> uses)
    : plan_(plan),
      spans_(spans),
      topology_(topology),
      node_(node),
      uses_(uses),
      order_(plan, spans) {
  for (const std::vector<int>& ranks : topology.ranks_of) {
    base::Extent hull = {};
    for (const int rank : ranks) hull = base::hull(hull, spans[static_cast<std::size_t>(rank)]);
    hulls_.push_back(hull);
  }
}

bool Steps::node_touches(int node, base::Extent extent) const {
  const auto n = static_cast<std::size_t>(node);
  if (base::intersection(hulls_[n], extent).empty()) return false;
  return std::any_of(topology_.ranks_of[n].begin(), topology_.ranks_of[n].end(),
                     [&](int rank) { return touches(rank, extent); });
}

std::vector<int> Steps::sources(const Step& step) const {
  std::vector<int> found;
  for (int node = 0; node < topology_.nodes(); ++node)
    if (node != step.owner && node_touches(node, step.extent)) found.push_back(node);
  return found;
}

int Steps::message_rank(int node, std::uint64_t index) const {
  const std::vector<int>& ranks = topology_.ranks_of[static_cast<std::size_t>(node)];
  // An aggregator has one window in each round: the rounds alternate between the ranks.
  return ranks[index / std::max<std::size_t>(plan_.aggregators.size(), 1) % ranks.size()];
}

std::optional<Step> Steps::next() {
  while (const std::optional<std::uint64_t> window = order_.next()) {
    Step step{.index = index_++,
              .window = *window,
              .extent = plan_.extent_of(*window),
              .owner = plan_.owner(*window)};
    for (const int rank : topology_.ranks_of[static_cast<std::size_t>(node_)])
      step.locals += touches(rank, step.extent) ? 1 : 0;
    if (step.owner == node_)
      step.sources = topology_.nodes() == 1 ? 0 : static_cast<std::uint32_t>(sources(step).size());
    else if (step.locals == 0)
      continue;
    step.slot = static_cast<std::uint32_t>(taken_++ % uses_.size());
    step.use = uses_[step.slot]++;
    return step;
  }
  return {};
}

}  // namespace pario::exchange
