// Module model: the cost of accesses on a described machine. Pure and deterministic: no clock, no
// I/O, no random numbers.
//
// Simultaneous transfers are a fluid: targets, nodes and the network are shared fairly (max-min),
// in closed form if all flows are alike. If order matters (lock hand-overs), requests are simulated
// one by one. phase_of() converts a plan of module plan.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/base.hpp"
#include "core/layout/layout.hpp"
#include "core/pattern/pattern.hpp"
#include "parallel/plan/plan.hpp"

namespace pario::model {

/// A described computer and its file system. Times are seconds, rates bytes per second; a rate of 0
/// is no limit.
struct Machine {
  std::uint32_t targets = 1;
  double write_rate = 0, read_rate = 0;  ///< of one target
  double node_rate = 0;                  ///< of one node, to and from all targets
  double network_rate = 0;               ///< of all nodes together
  double exchange_rate = 0;              ///< of one aggregator, from or to other ranks
  double request_seconds = 0;            ///< time of a target per request, beside its bytes
  double round_trip = 0;                 ///< further time of a rank per request
  double handover_seconds = 0;  ///< time of a target when another client holds the lock unit
  double open_seconds = 0;      ///< of the metadata server, which serves one request at a time
  double create_seconds = 0;
};

/// Equal transfers of the ranks of one node. Bytes and requests are sums over these ranks and are
/// distributed evenly to the targets (first_target + k * step) % Machine::targets.
struct Flow {
  std::uint32_t node = 0;
  std::uint32_t ranks = 1;
  std::uint32_t first_target = 0, targets = 1, step = 1;
  std::uint64_t bytes = 0;
  std::uint64_t requests = 0;
  std::uint64_t handovers = 0;
  std::uint32_t depth = 0;  ///< requests that a rank has in flight; 0: any number
};

/// Simultaneous flows; a phase ends with its last flow.
struct Phase {
  plan::Direction direction = plan::Direction::write;
  std::vector<Flow> flows = {};
  std::uint64_t opens = 0, creates = 0;
  std::uint64_t exchanged = 0;  ///< bytes that the busiest aggregator receives
  bool overlapped = true;       ///< exchange and file access overlap, as in pario's engine
};

/// The resource that limits a phase most.
enum class Bound : std::uint8_t { nothing, targets, nodes, network, ranks, exchange, metadata };
std::string_view name(Bound bound);

struct Cost {
  double seconds = 0;
  /// the parts of `seconds`; their sum is larger if they overlap
  double metadata = 0, exchange = 0, moving = 0;
  double busiest_target = 0;  ///< seconds for which it is occupied
  Bound bound = Bound::nothing;
};

/// Computes the cost of a phase. 10,000 flows over 1,000 targets each take 0.2 s to compute if they
/// are alike, 4 s if all differ. Flows that end within 2 % of each other end together.
Cost cost(const Machine& machine, const Phase& phase);

struct Request {
  std::uint32_t unit = 0;  ///< number of the lock unit; it lies on target unit % Machine::targets
  std::uint64_t bytes = 0;
};
struct Turns {
  double seconds = 0;
  std::uint64_t handovers = 0;
};
/// Simulates clients, each of which makes its requests one at a time; targets serve in the order of
/// arrival.
Turns take_turns(const Machine& machine, plan::Direction direction,
                 std::span<const std::vector<Request>> clients);

/// Returns requests, bytes and hand-overs of a planned collective call. Ranks that move their own
/// bytes have one request in flight; windows have as many writers as the plan allows.
Phase phase_of(const plan::Situation& situation, const plan::Plan& plan);
/// Returns requests, bytes and hand-overs of independent calls of each rank. The flows include the
/// reads of sieved writes.
Phase independent_phase(const plan::Situation& situation, const hints::FileHints& hints);

}  // namespace pario::model
