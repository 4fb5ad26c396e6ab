// Costs of accesses on described machines.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/gil.hpp"
#include "core/hints/hints.hpp"
#include "instruments/model/model.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

/// The fields of pario.prove.model.load: node, ranks, first target, targets, step, bytes, requests,
/// hand-overs, depth.
using Flow = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                        std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t>;
/// writes, flows, opens, creates, exchanged, overlapped
using Phase =
    std::tuple<bool, std::vector<Flow>, std::uint64_t, std::uint64_t, std::uint64_t, bool>;
/// ranks, nodes, kind of file system, unit, targets
using Situation =
    std::tuple<std::uint32_t, std::uint32_t, std::string, std::uint64_t, std::uint32_t>;
using Settings = std::vector<std::pair<std::string, std::string>>;

struct Parameter {
  const char* name;
  double model::Machine::* value;
};
constexpr Parameter kParameters[] = {{"write_rate", &model::Machine::write_rate},
                                     {"read_rate", &model::Machine::read_rate},
                                     {"node_rate", &model::Machine::node_rate},
                                     {"network_rate", &model::Machine::network_rate},
                                     {"exchange_rate", &model::Machine::exchange_rate},
                                     {"request_seconds", &model::Machine::request_seconds},
                                     {"round_trip", &model::Machine::round_trip},
                                     {"handover_seconds", &model::Machine::handover_seconds},
                                     {"open_seconds", &model::Machine::open_seconds},
                                     {"create_seconds", &model::Machine::create_seconds}};

std::vector<std::string> model_parameters() {
  std::vector<std::string> names = {"targets"};
  for (const Parameter& parameter : kParameters) names.emplace_back(parameter.name);
  return names;
}

/// Lists the kinds of file systems.
std::vector<std::string> model_kinds() {
  return {
#define PARIO_FILE_SYSTEM(kind, ...) #kind,
#include "core/layout/layout.def"
#undef PARIO_FILE_SYSTEM
  };
}

model::Machine machine_of(const std::vector<std::pair<std::string, double>>& values) {
  model::Machine machine;
  for (const auto& [name, value] : values) {
    const auto* known = std::ranges::find(
        kParameters, name, [](const Parameter& parameter) { return std::string(parameter.name); });
    if (name == "targets") {
      machine.targets = static_cast<std::uint32_t>(value);
    } else if (known != std::end(kParameters)) {
      machine.*known->value = value;
    } else {
      throw nb::value_error(("no such parameter of a machine: " + name).c_str());
    }
  }
  return machine;
}

plan::Direction direction_of(bool writes) {
  return writes ? plan::Direction::write : plan::Direction::read;
}

model::Phase from_python(const Phase& phase) {
  const auto& [writes, flows, opens, creates, exchanged, overlapped] = phase;
  model::Phase out{direction_of(writes), {}, opens, creates, exchanged, overlapped};
  for (const auto& [node, ranks, first, targets, step, bytes, requests, handovers, depth] : flows)
    out.flows.push_back({node, ranks, first, targets, step, bytes, requests, handovers, depth});
  return out;
}

Phase to_python(const model::Phase& phase) {
  std::vector<Flow> flows;
  for (const model::Flow& flow : phase.flows)
    flows.emplace_back(flow.node, flow.ranks, flow.first_target, flow.targets, flow.step,
                       flow.bytes, flow.requests, flow.handovers, flow.depth);
  return {phase.direction == plan::Direction::write,
          flows,
          phase.opens,
          phase.creates,
          phase.exchanged,
          phase.overlapped};
}

/// seconds, metadata, exchange, moving, busiest target, limiting resource
using Cost = std::tuple<double, double, double, double, double, std::string>;
Cost model_cost(const std::vector<std::pair<std::string, double>>& machine, const Phase& phase) {
  const model::Machine described = machine_of(machine);
  const model::Phase what = from_python(phase);
  const Released released;
  const model::Cost cost = model::cost(described, what);
  return {cost.seconds, cost.metadata,       cost.exchange,
          cost.moving,  cost.busiest_target, std::string(model::name(cost.bound))};
}

/// Simulates ranks, each of which makes its requests, (lock unit, bytes), one after the other.
/// Returns seconds and hand-overs.
std::pair<double, std::uint64_t> model_turns(
    const std::vector<std::pair<std::string, double>>& machine, bool writes,
    const std::vector<std::vector<std::pair<std::uint32_t, std::uint64_t>>>& clients) {
  std::vector<std::vector<model::Request>> all(clients.size());
  for (std::size_t client = 0; client < clients.size(); ++client)
    for (const auto& [unit, bytes] : clients[client]) all[client].push_back({unit, bytes});
  const model::Turns turns = model::take_turns(machine_of(machine), direction_of(writes), all);
  return {turns.seconds, turns.handovers};
}

hints::FileHints hints_of(const Settings& settings) {
  hints::FileHints hints = hints::default_file_hints();
  std::string reason;
  for (const auto& [key, value] : settings)
    if (!hints::set(hints, {key, value}, reason))
      throw nb::value_error((key + "=" + value + ": " + reason).c_str());
  return hints;
}

std::vector<pattern::Summary> summaries_of(const std::string& type,
                                           const std::vector<std::uint64_t>& places) {
  const auto layout = pattern::TypeMap::parse(type);
  if (!layout.ok()) throw nb::value_error(layout.error().text().c_str());
  pattern::Access access;
  access.view.filetype = *layout;
  access.bytes = layout->size();
  std::vector<pattern::Summary> all;
  for (const std::uint64_t place : places) {
    access.view.displacement = place;
    all.push_back(pattern::summarise(access));
  }
  return all;
}

/// Plans one call in which rank r moves `type` at places[r]; further ranks move no data. Returns
/// the phase, and the plan as text.
std::pair<Phase, std::string> model_call(const Situation& given, bool writes, bool collective,
                                         const std::string& type,
                                         const std::vector<std::uint64_t>& places,
                                         const Settings& settings) {
  const auto& [ranks, nodes, kind, unit, targets] = given;
  std::vector<pattern::Summary> summaries = summaries_of(type, places);
  summaries.resize(ranks);
  std::vector<int> node_of(ranks);
  for (std::uint64_t rank = 0; rank < ranks; ++rank)
    node_of[rank] = static_cast<int>(rank * nodes / ranks);
  const hints::FileHints hints = hints_of(settings);
  const plan::Situation situation{
      direction_of(writes), summaries, node_of, {layout::kind_of_name(kind), unit, targets}};
  if (!collective) return {to_python(model::independent_phase(situation, hints)), "independent"};
  const plan::Plan plan = plan::make_plan(situation, hints);
  return {to_python(model::phase_of(situation, plan)), plan.text()};
}

}  // namespace

void add_model(nb::module_& module) {
  module.def("model_parameters", &model_parameters);
  module.def("model_kinds", &model_kinds);
  module.def("model_cost", &model_cost, "machine"_a, "phase"_a);
  module.def("model_turns", &model_turns, "machine"_a, "writes"_a, "clients"_a);
  module.def("model_call", &model_call, "situation"_a, "writes"_a, "collective"_a, "type"_a,
             "places"_a, "settings"_a);
}

}  // namespace pario::bindings
