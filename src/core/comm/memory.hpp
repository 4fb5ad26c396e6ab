// Memory that processes of a node share: a memfd that other processes open through /proc, or a file
// in /dev/shm that is unlinked at once.
#pragma once

#include <functional>
#include <memory>

#include "core/comm/comm.hpp"

namespace pario::comm {

/// The place of the leader's memory, for the other ranks.
struct Ticket {
  std::uint64_t pid = 0, number = 0;    ///< of the process and its descriptor or file
  std::uint64_t device = 0, inode = 0;  ///< of the file at that place
  bool valid = false;
};

/// The messages of ranks before they share memory. Both functions are collective over them, and
/// return false on failure.
struct Introduction {
  std::function<bool(Ticket&)> publish;      ///< sends the leader's ticket to all
  std::function<bool(bool mine)> all_agree;  ///< true if `mine` is true on all
};

/// Collective: zeroed memory of `size` bytes, or null on all.
std::shared_ptr<SharedMemory> share_memory(std::size_t size, bool leader,
                                           const Introduction& introduction);

}  // namespace pario::comm
