// Locks on ranges of a file between the ranks and threads of one node, in memory that they share.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/base.hpp"

namespace pario::engine {

/// Separates read-modify-writes of a file that is open on one node. A lock of fcntl(2) does the
/// same with two system calls. Thread-safe, and safe between processes: the locks of a dead rank
/// are free.
class NodeLocks {
 public:
  static constexpr std::size_t memory_size() { return sizeof(Slot) * kSlots; }
  /// Called by one rank before any other uses the zeroed `memory` of memory_size() bytes.
  static void initialise(std::byte* memory);

  /// `memory` must outlive the object, and be aligned to 64 bytes.
  explicit NodeLocks(std::byte* memory);

  /// The lock of a range, for its lifetime. A thread holds at most one.
  class Hold {
   public:
    Hold(const NodeLocks& locks, base::Extent range);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    const NodeLocks& locks_;
    std::uint64_t slots_;  // a bit for each slot that is locked
  };

 private:
  static constexpr std::size_t kSlots = 64;
  struct alignas(64) Slot {
    pthread_mutex_t mutex;
  };
  static std::uint64_t find_slots(base::Extent range);

  std::span<Slot> slots_;
};

}  // namespace pario::engine
