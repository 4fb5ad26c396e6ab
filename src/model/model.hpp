// Room model: what accesses cost on a machine that is only described. Pure and deterministic: no clock, no I/O, no random numbers.
//
// Bytes that many move at the same time are a fluid: targets, nodes and the network are shared fairly (max-min), by closed form where all
// do alike. Where order matters, who takes locks from whom, requests are played one by one. What a plan of room plan would do is turned
// into either by phase_of().
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/base.hpp"
#include "layout/layout.hpp"
#include "pattern/pattern.hpp"
#include "plan/plan.hpp"

namespace pario::model {

/// Seconds, and bytes per second; a rate of 0 is no limit.
struct Machine {
  std::uint32_t targets = 1;
  double write_rate = 0, read_rate = 0;  ///< of one target
  double node_rate = 0;                  ///< of one node, to and from all targets
  double network_rate = 0;               ///< of all nodes together
  double exchange_rate = 0;              ///< what one aggregator takes in from, or hands out to, other ranks
  double request_seconds = 0;            ///< that a request occupies its target beside its bytes
  double round_trip = 0;                 ///< that a request keeps its rank waiting beside that
  double handover_seconds = 0;           ///< that it occupies its target when the lock unit is taken from another client
  double open_seconds = 0;               ///< of the metadata server, one after the other
  double create_seconds = 0;
};

/// Ranks of one node that do alike. Bytes and requests are those of all of them, and fall evenly on the targets
/// (first_target + k * step) % Machine::targets.
struct Flow {
  std::uint32_t node = 0;
  std::uint32_t ranks = 1;
  std::uint32_t first_target = 0, targets = 1, step = 1;
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
  std::uint64_t handovers = 0;
  std::uint32_t depth = 0;  ///< requests that a rank has under way at a time; 0: any number
};

/// What happens at the same time; it ends when all have ended.
struct Phase {
  plan::Direction direction = plan::Direction::write;
  std::vector<Flow> flows = {};
  std::uint64_t opens = 0, creates = 0;
  std::uint64_t exchanged = 0;  ///< bytes of the aggregator that takes in most
  bool overlapped = true;       ///< exchanging and moving bytes overlap, as pario's engine does it
};

/// What limits a phase most.
enum class Bound : std::uint8_t { nothing, targets, nodes, network, ranks, exchange, metadata };
std::string_view name(Bound bound);

struct Cost {
  double seconds = 0;
  double metadata = 0, exchange = 0, moving = 0;  ///< its parts; those that overlap add up to more
  double busiest_target = 0;                      ///< seconds for which it is occupied
  Bound bound = Bound::nothing;
};

/// A phase of 10,000 flows over 1,000 targets each takes 0.2 s when they are alike, 4 s when all differ. Flows that end within 2 % of each
/// other end together.
Cost cost(const Machine& machine, const Phase& phase);

struct Request {
  std::uint32_t unit = 0;  ///< of locking; it lies on target unit % Machine::targets
  std::uint64_t bytes = 0;
};
struct Turns {
  double seconds = 0;
  std::uint64_t handovers = 0;
};
/// Clients that make their requests one after the other, one at a time; targets serve in the order of arrival.
Turns take_turns(const Machine& machine, plan::Direction direction, std::span<const std::vector<Request>> clients);

/// What a collective call comes to when it is carried out as planned: requests, bytes and hand-overs at the targets. Depth 1, where ranks
/// move their own bytes, windows by as many writers as the plan allows.
Phase phase_of(const plan::Situation& situation, const plan::Plan& plan);
/// The same calls made by each rank for itself. What sieving reads before it writes is in the flows, too.
Phase independent_phase(const plan::Situation& situation, const hints::FileHints& hints);

}  // namespace pario::model
