// The collective calls inside a node, through shared memory with one futex and without messages.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/comm/comm.hpp"
#include "core/comm/spin_time.hpp"

namespace pario::comm {

/// One member's access to the board of a node: barrier, allgather, errors and keep-alives in shared
/// memory. Unless noted, a call is collective over the `count` members, in the same order on all,
/// and made by one thread of each member at a time. Once a member has failed, all calls of all
/// members end with its error.
class Board {
 public:
  /// Bytes of zeroed memory that `count` members need.
  static std::size_t bytes(int count);
  /// Member number `me`; every member has its own Board on the same memory.
  Board(std::shared_ptr<SharedMemory> memory, int me, int count);

  base::Status barrier(const Patience& patience);
  /// `each` bytes of member i end at `places[i]`.
  base::Status allgather(const void* mine, std::size_t each, std::span<std::byte* const> places,
                         const Patience& patience);
  base::Status broadcast(void* data, std::size_t size, int root, const Patience& patience);

  /// Not collective: all later calls of all members end with the first error. True if this call set
  /// it.
  bool fail(const base::Error& error) const;
  bool has_failed() const;
  base::Status failure() const;
  /// True once, on one member: it sends the error to other nodes.
  bool claim_error_forward() const;

  /// Not collective: this member begins a call; `call` is truncated to 39 characters.
  void announce(std::string_view call) const;
  /// Not collective: as announce(), without counting the call.
  void note_call(std::string_view call) const;
  /// The number of calls that a member has begun, and the name of the latest; the name may be torn
  /// while the member begins another.
  struct Presence {
    std::uint64_t calls = 0;
    std::string call = {};
  };
  std::uint64_t calls_of(int member) const;
  Presence presence_of(int member) const;
  /// Not collective: the time (base::monotonic_ns) of the members' latest keep-alive.
  void note_keep_alive(std::uint64_t now) const;
  std::uint64_t last_keep_alive() const;
  /// True on one member in each interval: it sends a keep-alive to other nodes.
  bool claim_forward(std::uint64_t now, std::uint64_t interval_ns) const;
  /// True on one member, until it is released.
  bool claim_report() const;
  void release_report() const;

 private:
  struct Head;
  struct Line;
  Head& head() const;
  Line& line(int member) const;
  /// The slot of a member in this round. Rounds alternate between two sets of slots, so that no
  /// slot is overwritten while it is read.
  std::byte* slot(int who) const;
  void pass_all() const;
  bool has_core_for_each() const;
  bool spin(const std::function<bool()>& done);
  base::Status sleep_until(const std::function<bool()>& done, const Patience& patience) const;

  std::shared_ptr<SharedMemory> memory_;
  int me_, count_;
  unsigned round_ = 0;
  SpinTime spin_time_;
};

}  // namespace pario::comm
