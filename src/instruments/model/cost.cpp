#include <algorithm>
#include <numeric>

#include "instruments/model/sharing.hpp"

namespace pario::model {
namespace {

/// Flows whose ends differ by less than this part of the time until then end together.
constexpr double kTogether = 0.02;

/// Returns the seconds until the last flow ends; whenever flows end, the others get new shares.
double moving_seconds(const Sharing& sharing, std::size_t flows) {
  std::vector<std::uint32_t> active(flows);
  std::iota(active.begin(), active.end(), 0);
  std::vector<double> left(flows, 1);
  double now = 0;
  while (!active.empty()) {
    const std::vector<double> rate = sharing.rates(active);
    // 0 if the rate is infinite
    const auto lasts = [&](std::uint32_t flow) { return left[flow] / rate[flow]; };
    const double first = lasts(*std::ranges::min_element(active, {}, lasts));
    const double together = first + kTogether * (now + first);
    double step = first;
    for (const auto flow : active)
      if (lasts(flow) <= together) step = std::max(step, lasts(flow));
    std::erase_if(active, [&](std::uint32_t flow) { return lasts(flow) <= step; });
    for (const auto flow : active) left[flow] -= step * rate[flow];
    now += step;
  }
  return now;
}

double largest(const std::vector<double>& values, std::size_t from, std::size_t to) {
  double most = 0;
  for (std::size_t i = from; i < to; ++i) most = std::max(most, values[i]);
  return most;
}

double longest_own(const Sharing& sharing, std::size_t flows) {
  double most = 0;
  for (std::uint32_t flow = 0; flow < flows; ++flow) most = std::max(most, sharing.need(flow).own);
  return most;
}

}  // namespace

std::string_view name(Bound bound) {
  constexpr std::string_view kNames[] = {"nothing", "targets",  "nodes",   "network",
                                         "ranks",   "exchange", "metadata"};
  return kNames[static_cast<std::size_t>(bound)];
}

Cost cost(const Machine& machine, const Phase& phase) {
  const Sharing sharing(machine, phase);
  const std::vector<double> busy = sharing.busy();
  Cost cost;
  cost.metadata = static_cast<double>(phase.opens) * machine.open_seconds +
                  static_cast<double>(phase.creates) * machine.create_seconds;
  cost.exchange =
      machine.exchange_rate > 0 ? static_cast<double>(phase.exchanged) / machine.exchange_rate : 0;
  cost.moving = moving_seconds(sharing, phase.flows.size());
  cost.busiest_target = largest(busy, 1 + sharing.nodes(), busy.size());
  cost.seconds = cost.metadata + (phase.overlapped ? std::max(cost.exchange, cost.moving)
                                                   : cost.exchange + cost.moving);
  const std::pair<double, Bound> limits[] = {
      {busy[0], Bound::network},
      {largest(busy, 1, 1 + sharing.nodes()), Bound::nodes},
      {longest_own(sharing, phase.flows.size()), Bound::ranks},
      {cost.busiest_target, Bound::targets},
      {cost.exchange, Bound::exchange},
      {cost.metadata, Bound::metadata}};
  double most = 0;
  for (const auto& [seconds, bound] : limits)
    if (seconds > most) most = seconds, cost.bound = bound;
  return cost;
}

}  // namespace pario::model
