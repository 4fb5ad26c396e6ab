// The collective calls of all members, in two levels: inside a node on its Board, between the
// leaders of nodes by messages.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/comm/attendance.hpp"
#include "core/comm/board.hpp"
#include "core/comm/comm.hpp"

namespace pario::comm {

/// `labels[r]`: anything that is equal for the ranks of one node.
Topology make_topology(std::span<const int> labels);

/// A keep-alive of a node; plain words, sent as they are.
struct KeepAlive {
  std::uint64_t interval_ns = 0;  ///< between two keep-alives
  std::int32_t node = 0;          ///< its origin
};

class NodeComm : public Comm, protected AttendanceCheck::Mail {
 public:
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(topology_.node_of.size()); }
  const Topology& topology() const override { return topology_; }
  base::Status allgather(const void* mine, std::size_t each, void* all,
                         const Patience& patience) override;
  base::Status broadcast(void* data, std::size_t size, int root, const Patience& patience) override;
  base::Status barrier(const Patience& patience) override;

  base::Status check(std::uint64_t silence_s) override;
  void fail(const base::Error& error) override { board_.fail(error); }
  bool has_failed() const override { return board_.has_failed(); }
  base::Status failure() override;
  void announce(const char* call) override {
    noted_ = call;
    board_.announce(call);
  }
  void note_call(const char* call) override {
    if (call != noted_) board_.note_call(noted_ = call);
  }
  Attendance attendance() override { return attendance_.attendance(*this); }
  void keep_alive(std::uint64_t interval_ns) override;
  std::uint64_t last_keep_alive() const override { return board_.last_keep_alive(); }
  bool claim_report() override { return board_.claim_report(); }
  void release_report() override { board_.release_report(); }

 protected:
  /// `memory`: the node's, of Board::bytes(ranks of the node), used by nothing else.
  NodeComm(int rank, Topology topology, std::shared_ptr<SharedMemory> memory);
  Board& board() { return board_; }
  /// The given Patience, with the defaults of this Comm for missing functions.
  Patience patience_for(const Patience& given);
  /// "rank 2 (5 of the program)", "ranks 2 and 3 (5 and 6 of the program)"
  std::string names(std::span<const int> ranks) const;
  /// Returns the outcome of a collective call; an error becomes the error of all ranks.
  base::Status share_error(base::Status status);
  /// The error that has reached this node, from here or from other nodes. Does not look for dead
  /// ranks.
  base::Status known_failure();

  /// True if the calling thread may send notes between nodes.
  virtual bool may_send_notes() const { return true; }
  /// The call that a rank of this node is in: "inside MPI_Recv for 61 s"; empty if not known.
  virtual std::string current_call(int) const { return {}; }
  std::string remark(int rank, const std::string& last_call) const override;

 private:
  bool is_leader() const { return leader() == rank_; }
  void send_error(const base::Error& error);
  void receive_error();
  void forward_keep_alive(const KeepAlive& note);
  void receive_keep_alives();
  base::Status gather_over_nodes(const void* mine, std::size_t each, void* all,
                                 const Patience& patience);
  base::Status broadcast_over_nodes(void* data, std::size_t size, int root,
                                    const Patience& patience);
  base::Status barrier_over_nodes(const Patience& patience);

  int rank_;
  Topology topology_;
  Board board_;
  AttendanceCheck attendance_;
  const char* noted_ = nullptr;  // the name of this rank's latest call on the board
};

}  // namespace pario::comm
