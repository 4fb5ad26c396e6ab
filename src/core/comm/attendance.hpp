// The attendance of a collective call: waiting ranks ask which ranks are missing.
//
// Inside a node the Board shows the missing ranks. After a long wait a rank asks the ranks of the
// other nodes by notes; ranks that wait in a call of the same Comm answer for their node. A node
// that does not answer counts as missing.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/comm/board.hpp"
#include "core/comm/comm.hpp"

namespace pario::comm {

/// The tags of notes, past the tags of a Comm's users.
inline constexpr int kCollectiveTag = 1 << 15, kErrorTag = kCollectiveTag + 1,
                     kAttendanceTag = kErrorTag + 1, kKeepAliveTag = kAttendanceTag + 1;

/// A plain record as the bytes of a note.
template <class Record>
std::span<std::byte> bytes_of(Record& record) {
  return std::as_writable_bytes(std::span(&record, 1));
}
template <class Record>
std::span<const std::byte> bytes_of(const Record& record) {
  return std::as_bytes(std::span(&record, 1));
}

/// A question or an answer; plain words, sent as they are.
struct AttendanceNote {
  static constexpr std::size_t kMostRanks = 1024;  ///< of a node; the others count as missing
  std::uint64_t call = 0;                          ///< number of the announced call
  std::int32_t from = 0;                           ///< rank
  std::int32_t asks = 0;                           ///< 1: asks for an answer
  std::array<std::uint64_t, kMostRanks / 64> present =
      {};  ///< bits of the ranks of the sender's node
  std::array<char, 1024> remarks = {};
};

/// The questions and answers of one rank. Thread-safe.
class AttendanceCheck {
 public:
  /// Sends notes to other nodes and receives a note that has arrived (false: none has). Neither
  /// waits.
  class Mail {
   public:
    virtual ~Mail() = default;
    virtual void send_note(int to, int tag, std::span<const std::byte> note) = 0;
    virtual bool receive_note(int tag, std::span<std::byte> note) = 0;
    virtual std::string remark(int rank, const std::string& last_call) const = 0;
  };
  AttendanceCheck(const Board& board, const Topology& topology, int rank)
      : board_(board), topology_(topology), rank_(rank) {}

  /// Answers the questions that have arrived, and stores the answers.
  void read_notes(Mail& mail);
  Attendance attendance(Mail& mail);

 private:
  int node() const { return topology_.node_of[static_cast<std::size_t>(rank_)]; }
  const std::vector<int>& ranks_of(int node) const {
    return topology_.ranks_of[static_cast<std::size_t>(node)];
  }
  std::uint64_t call() const;
  AttendanceNote note(const Mail& mail, std::uint64_t call, bool asks) const;
  std::string remarks(const Mail& mail, std::uint64_t call) const;
  void read_all(Mail& mail);
  void ask(Mail& mail);
  bool another_has_asked() const;
  /// Adds the answer of a node to this rank's latest announced call, or its lack.
  void add_answer(int from, Attendance& out) const;

  const Board& board_;
  const Topology& topology_;
  int rank_;
  std::mutex mutex_;
  std::uint64_t asked_ = 0;                           // the call of the latest question
  std::vector<std::optional<AttendanceNote>> notes_;  // the latest of each node
};

}  // namespace pario::comm
