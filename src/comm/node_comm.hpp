// Collective calls in two levels, the same for all members: inside a node on its Board, between the nodes' leaders by messages.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/board.hpp"
#include "comm/comm.hpp"
#include "comm/roll.hpp"

namespace pario::comm {

/// `labels[r]`: anything that is equal for the ranks of one node.
Topology make_topology(std::span<const int> labels);

/// The tags of its own messages, past those of its users: of collective calls, failures and roll
/// calls.
inline constexpr int kCollectiveTag = 1 << 15, kNewsTag = kCollectiveTag + 1, kRollTag = kNewsTag + 1;

class NodeComm : public Comm, protected Roll::Mail {
 public:
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(topology_.node_of.size()); }
  const Topology& topology() const override { return topology_; }
  base::Status allgather(const void* mine, std::size_t each, void* all, const Patience& patience) override;
  base::Status broadcast(void* data, std::size_t size, int root, const Patience& patience) override;
  base::Status barrier(const Patience& patience) override;

  base::Status check(std::uint64_t silence_s) override;
  void fail(const base::Error& error) override { board_.fail(error); }
  bool failed() const override { return board_.failed(); }
  base::Status failure() override;
  void announce(const char* call) override { board_.announce(call); }
  Attendance attendance() override { return roll_.attendance(*this); }
  bool claim_report() override { return board_.claim_report(); }
  void release_report() override { board_.release_report(); }

 protected:
  /// `memory`: the node's, of Board::bytes(ranks of the node), used by nothing else.
  NodeComm(int rank, Topology topology, std::shared_ptr<SharedMemory> memory);
  Board& board() { return board_; }
  /// What the given Patience lacks is added.
  Patience patience_for(const Patience& given);
  /// "rank 2 (5 of the program)", "ranks 2 and 3 (5 and 6 of the program)"
  std::string names(std::span<const int> ranks) const;
  /// The outcome of a collective call; an error is that of all from now on.
  base::Status settle(base::Status status);
  /// What is known already, here and from other nodes.
  base::Status news();

  /// Between nodes, where the calling thread may: news for another leader, and what has been told to this one.
  virtual bool may_talk() const { return true; }
  virtual void tell(int leader, const ErrorRecord& news) = 0;
  virtual bool hear(ErrorRecord& news) = 0;
  std::string remark(int rank, const std::string& last_call) const override;

 private:
  bool is_leader() const { return leader() == rank_; }
  int leader_of(int node) const;
  void tell_nodes(const base::Error& error);
  void hear_nodes();
  base::Status gather(const void* mine, std::size_t each, void* all, const Patience& patience);
  base::Status spread(void* data, std::size_t size, int root, const Patience& patience);
  base::Status meet(const Patience& patience);
  /// Among leaders.
  base::Status gather_nodes(std::byte* all, std::size_t each, const Patience& patience);
  base::Status broadcast_nodes(std::span<std::byte> data, int root_node, const Patience& patience);
  base::Status meet_nodes(const Patience& patience);
  base::Status swap(int to, std::span<const std::byte> out, int from, std::span<std::byte> in, const Patience& patience);

  int rank_;
  Topology topology_;
  Board board_;
  Roll roll_;
};

}  // namespace pario::comm
