// Ranks that are processes: their deaths, their hosts and the memory that they share.
#pragma once

#include <memory>
#include <vector>

#include "core/comm/lifelines.hpp"
#include "core/comm/node_comm.hpp"
#include "core/comm/process.hpp"

namespace pario::comm {

/// A rank's identity for other ranks; plain words, sent as they are.
struct Member {
  Process process = {};
  int world_rank = -1;  ///< -1: unknown
};
using Members = std::shared_ptr<const std::vector<Member>>;  // by rank

/// A NodeComm whose ranks are processes. Looks up ranks of this node in /proc; the leaders of the
/// nodes watch each other's hosts (Lifelines).
class ProcessComm : public NodeComm {
 public:
  int world_rank(int other) const override;
  bool alive(int other) const override;
  base::Status check(std::uint64_t silence_s) override;
  std::shared_ptr<SharedMemory> share(std::size_t size, const Patience& given) override;

  /// Collective: from now on leaders detect dead hosts and dead leaders. A host that cannot be
  /// connected is not watched.
  void connect_hosts();
  /// From now on this Comm notices the hosts that another one of the same ranks watches.
  void watch_hosts_of(const ProcessComm& other) { lifelines_ = other.lifelines_; }
  /// From now on remarks on missing ranks name their current calls.
  void look_up_calls_by(CallLookup lookup) { call_lookup_ = lookup; }
  CallLookup call_lookup() const { return call_lookup_; }
  /// ESRCH if another host is dead (see Comm::check).
  virtual base::Status lost_host(std::uint64_t silence_s);

 protected:
  ProcessComm(int rank, Topology nodes, std::shared_ptr<SharedMemory> memory, Members members)
      : NodeComm(rank, std::move(nodes), std::move(memory)), members_(std::move(members)) {}
  const Members& members() const { return members_; }
  std::string current_call(int other) const override;

 private:
  const Member& member(int rank) const { return (*members_)[static_cast<std::size_t>(rank)]; }
  bool all_agree(bool mine, const Patience& patience);

  Members members_;
  CallLookup call_lookup_ = nullptr;
  std::shared_ptr<Lifelines> lifelines_;  // of a leader that has called connect_hosts()
};

}  // namespace pario::comm
