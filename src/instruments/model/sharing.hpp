// Fair shares of targets, nodes and the network, for a set of active flows.
#pragma once

#include <vector>

#include "instruments/model/model.hpp"

namespace pario::model {

/// The time that a whole flow needs on each resource, in seconds.
struct Need {
  double network = 0, node = 0;
  double target = 0;  ///< of each of its targets
  double own = 0;     ///< without competitors
  double weight = 1;  ///< flows per second for equal time of all ranks at the targets
};
Need need_of(const Machine& machine, plan::Direction direction, const Flow& flow);

/// Max-min fairness: the rates of all flows rise together until a resource is full or a flow has
/// its full speed.
class Sharing {
 public:
  Sharing(const Machine& machine, const Phase& phase);
  /// Returns flows per second for the flows in `active`; infinite: no limit.
  std::vector<double> rates(const std::vector<std::uint32_t>& active) const;
  /// Returns the seconds for which each resource is occupied in the phase: the network, nodes,
  /// targets.
  std::vector<double> busy() const;
  const Need& need(std::uint32_t flow) const { return needs_[flow]; }
  std::uint32_t nodes() const { return nodes_; }

 private:
  /// By resource: the use by flows with final rates, and the increase by the others.
  struct Filling {
    std::vector<double> used, slope;
  };
  /// Returns the level to which all flows rise until a resource is full or a flow has its full
  /// speed.
  double level(const std::vector<std::uint32_t>& rising, const Filling& filling) const;
  bool stops(std::uint32_t flow, double level, const Filling& filling) const;
  void freeze(std::uint32_t flow, double rate, Filling& filling) const;
  /// Calls function(resource, seconds) for all resources that a flow uses.
  template <class Function>
  void for_each_resource(std::uint32_t flow, Function function) const;
  std::size_t resources() const { return 1 + nodes_ + targets_; }

  const std::vector<Flow>& flows_;
  std::vector<Need> needs_;
  std::uint32_t nodes_ = 0, targets_;
};

}  // namespace pario::model
