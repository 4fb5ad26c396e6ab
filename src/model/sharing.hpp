// Who gets how much of what is shared, while the same flows are active.
#pragma once

#include <vector>

#include "model/model.hpp"

namespace pario::model {

/// What a flow as a whole needs, in seconds of each thing that it uses.
struct Need {
  double network = 0, node = 0;
  double target = 0;  ///< of each of its targets
  double own = 0;     ///< it takes so long even alone
  double weight = 1;  ///< ranks get equal time of targets: the share of the flow that this is
};
Need need_of(const Machine& machine, plan::Direction direction, const Flow& flow);

/// Max-min fair: all flows rise together, until a thing they use is full or they are as fast as they can.
class Sharing {
 public:
  Sharing(const Machine& machine, const Phase& phase);
  /// Shares of flows that are done in a second, for those whose number is in `active`; infinite: nothing limits it.
  std::vector<double> rates(const std::vector<std::uint32_t>& active) const;
  /// Seconds for which each thing is occupied in the whole phase: the network, then nodes, then targets.
  std::vector<double> busy() const;
  const Need& need(std::uint32_t flow) const { return needs_[flow]; }
  std::uint32_t nodes() const { return nodes_; }

 private:
  /// Of each thing: what flows that no longer rise use of it, and how fast the others fill it.
  struct Filling {
    std::vector<double> used, slope;
  };
  /// How far all can rise together until a thing is full or a flow as fast as it can.
  double level(const std::vector<std::uint32_t>& rising, const Filling& filling) const;
  bool stops(std::uint32_t flow, double level, const Filling& filling) const;
  void freeze(std::uint32_t flow, double rate, Filling& filling) const;
  /// Calls function(number of the thing, seconds of it) for all that a flow uses.
  template <class Function>
  void each(std::uint32_t flow, Function function) const;
  std::size_t things() const { return 1 + nodes_ + targets_; }

  const std::vector<Flow>& flows_;
  std::vector<Need> needs_;
  std::uint32_t nodes_ = 0, targets_;
};

}  // namespace pario::model
