#include "instruments/model/sharing.hpp"

#include <algorithm>
#include <limits>

namespace pario::model {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
/// A resource used to this part counts as full.
constexpr double kFull = 1 - 1e-9;
/// Rounding errors of differences are below this part.
constexpr double kNothing = 1e-15;

double seconds_at(double rate, double bytes) { return rate > 0 ? bytes / rate : 0; }

}  // namespace

Need need_of(const Machine& machine, plan::Direction direction, const Flow& flow) {
  const double rate = direction == plan::Direction::write ? machine.write_rate : machine.read_rate;
  const auto bytes = static_cast<double>(flow.bytes), requests = static_cast<double>(flow.requests);
  const double service = seconds_at(rate, bytes) + requests * machine.request_seconds +
                         static_cast<double>(flow.handovers) * machine.handover_seconds;
  const double slots = static_cast<double>(flow.ranks) * flow.depth;
  Need need;
  need.network = seconds_at(machine.network_rate, bytes);
  need.node = seconds_at(machine.node_rate, bytes);
  need.target = service / flow.targets;
  need.own = slots > 0 ? (service + requests * machine.round_trip) / slots : 0;
  need.weight = flow.ranks / std::max(service > 0 ? service : bytes, 1e-12);
  return need;
}

Sharing::Sharing(const Machine& machine, const Phase& phase)
    : flows_(phase.flows), targets_(std::max(machine.targets, 1u)) {
  for (const Flow& flow : flows_) {
    nodes_ = std::max(nodes_, flow.node + 1);
    needs_.push_back(need_of(machine, phase.direction, flow));
  }
}

template <class Function>
void Sharing::for_each_resource(std::uint32_t flow, Function function) const {
  const Flow& of = flows_[flow];
  const Need& need = needs_[flow];
  function(0, need.network);
  function(1 + of.node, need.node);
  for (std::uint32_t k = 0; k < of.targets; ++k)
    function(1 + nodes_ + (of.first_target + k * of.step) % targets_, need.target);
}

std::vector<double> Sharing::busy() const {
  std::vector<double> seconds(resources());
  for (std::uint32_t flow = 0; flow < flows_.size(); ++flow)
    for_each_resource(flow,
                      [&](std::size_t resource, double of_it) { seconds[resource] += of_it; });
  return seconds;
}

double Sharing::level(const std::vector<std::uint32_t>& rising, const Filling& filling) const {
  double level = kInfinite;
  for (std::size_t t = 0; t < resources(); ++t)
    if (filling.slope[t] > kNothing && filling.used[t] < kFull)
      level = std::min(level, (1 - filling.used[t]) / filling.slope[t]);
  for (const auto flow : rising)
    if (needs_[flow].own > 0) level = std::min(level, 1 / (needs_[flow].own * needs_[flow].weight));
  return level;
}

bool Sharing::stops(std::uint32_t flow, double level, const Filling& filling) const {
  if (level == kInfinite || level * needs_[flow].weight * needs_[flow].own >= kFull) return true;
  bool full = false;
  for_each_resource(flow, [&](std::size_t t, double of_it) {
    full |= of_it > 0 && filling.used[t] + level * filling.slope[t] >= kFull;
  });
  return full;
}

void Sharing::freeze(std::uint32_t flow, double rate, Filling& filling) const {
  for_each_resource(flow, [&](std::size_t t, double of_it) {
    filling.used[t] += of_it > 0 ? of_it * rate : 0;
    filling.slope[t] -= of_it * needs_[flow].weight;
  });
}

std::vector<double> Sharing::rates(const std::vector<std::uint32_t>& active) const {
  std::vector<double> rate(flows_.size());
  Filling filling{std::vector<double>(resources()), std::vector<double>(resources())};
  for (const auto flow : active)
    for_each_resource(flow, [&](std::size_t t, double of_it) {
      filling.slope[t] += of_it * needs_[flow].weight;
    });
  std::vector<std::uint32_t> rising = active;
  while (!rising.empty()) {
    const double reached = level(rising, filling);
    const auto stopped = std::ranges::stable_partition(
        rising, [&](std::uint32_t flow) { return !stops(flow, reached, filling); });
    if (stopped.empty()) break;
    for (const auto flow : stopped)
      rate[flow] = reached == kInfinite ? kInfinite : reached * needs_[flow].weight;
    for (const auto flow : stopped) freeze(flow, rate[flow], filling);
    rising.erase(stopped.begin(), stopped.end());
  }
  return rate;
}

}  // namespace pario::model
