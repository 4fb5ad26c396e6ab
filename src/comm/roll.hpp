// The roll call: the ranks that wait in a collective call learn which ranks have not come to it.
//
// Inside a node the Board tells. A rank that has waited for long asks the ranks of the other nodes
// by messages; those that wait in a call of the same Comm answer for their node. A node that does
// not answer counts as missing.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/board.hpp"
#include "comm/comm.hpp"

namespace pario::comm {

/// A question or an answer; plain words, sent as they are.
struct RollNote {
  static constexpr std::size_t kMostRanks = 1024;           ///< of a node, that are told apart
  std::uint64_t call = 0;                                   ///< number of the announced call
  std::int32_t from = 0;                                    ///< rank
  std::int32_t asks = 0;                                    ///< 1: an answer is wanted
  std::array<std::uint64_t, kMostRanks / 64> present = {};  ///< bits of the ranks of the sender's node
  std::array<char, 160> remarks = {};
};

/// One rank's part of it. Thread-safe.
class Roll {
 public:
  /// Sends notes to other nodes, and takes one that has arrived (false: there is none). Neither
  /// waits.
  class Mail {
   public:
    virtual ~Mail() = default;
    virtual void send_note(int to, const RollNote& note) = 0;
    virtual bool take_note(RollNote& note) = 0;
    virtual std::string remark(int rank, const std::string& last_call) const = 0;
  };
  Roll(const Board& board, const Topology& topology, int rank) : board_(board), topology_(topology), rank_(rank) {}

  /// Answers the questions that have arrived, and keeps the answers.
  void read_notes(Mail& mail);
  Attendance attendance(Mail& mail);

 private:
  int node() const { return topology_.node_of[static_cast<std::size_t>(rank_)]; }
  const std::vector<int>& ranks_of(int node) const { return topology_.ranks_of[static_cast<std::size_t>(node)]; }
  std::uint64_t call() const;
  RollNote note(const Mail& mail, std::uint64_t call, bool asks) const;
  std::string remarks(const Mail& mail, std::uint64_t call) const;
  void read_all(Mail& mail);
  void ask(Mail& mail);
  bool another_has_asked() const;

  const Board& board_;
  const Topology& topology_;
  int rank_;
  std::mutex mutex_;
  std::uint64_t asked_ = 0;                     // the call that was asked about last
  std::vector<std::optional<RollNote>> notes_;  // the latest of each node
};

}  // namespace pario::comm
