// Where the ranks of a node meet: collective calls through memory they share, with one futex. No message is sent.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "comm/comm.hpp"

namespace pario::comm {

/// All functions but the constructor are collective over the `count` members, in the same order on all. One thread of each at a time.
/// Once one member has failed, all calls of all members end with its error.
class Board {
 public:
  /// Bytes of zeroed memory that `count` members need.
  static std::size_t bytes(int count);
  /// Member number `me`; every member has its own Board on the same memory.
  Board(std::shared_ptr<SharedMemory> memory, int me, int count);

  base::Status barrier(const Patience& patience);
  /// `each` bytes of member i end at `places[i]`.
  base::Status allgather(const void* mine, std::size_t each, std::span<std::byte* const> places, const Patience& patience);
  base::Status broadcast(void* data, std::size_t size, int root, const Patience& patience);

  /// Not collective: from now on all calls of all members end with an error, the first one. True: it was this one.
  bool fail(const base::Error& error) const;
  bool failed() const;
  base::Status failure() const;
  /// True once, for one member: the one that tells those that do not share this memory.
  bool must_tell() const;

  /// Not collective. This member begins a call; `call` is cut off after 39 characters.
  void announce(std::string_view call) const;
  /// Calls that a member has begun, and the name of the latest; the name may be torn while the
  /// member begins another.
  struct Presence {
    std::uint64_t calls = 0;
    std::string call = {};
  };
  std::uint64_t calls_of(int member) const;
  Presence presence_of(int member) const;
  /// True for one member, until it is released.
  bool claim_report() const;
  void release_report() const;

 private:
  struct Head;
  struct Line;
  Head& head() const;
  Line& line(int member) const;
  /// Where member `who` writes in this round; rounds take turns with two sets of slots, so that nobody overwrites what is being read.
  std::byte* slot(int who) const;

  std::shared_ptr<SharedMemory> memory_;
  int me_, count_;
  unsigned round_ = 0;
};

}  // namespace pario::comm
