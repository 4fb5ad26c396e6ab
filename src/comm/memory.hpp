// Memory that processes of a node share: a memfd that the others open through /proc, or a file in /dev/shm that is unlinked at once.
#pragma once

#include <functional>
#include <memory>

#include "comm/comm.hpp"

namespace pario::comm {

/// How the others find the leader's memory.
struct Ticket {
  std::uint64_t pid = 0, number = 0;    ///< of the process and its descriptor or file
  std::uint64_t device = 0, inode = 0;  ///< of what they must find there
  bool valid = false;
};

/// How the ranks that will share talk to each other while they do not yet. Both are collective over them; false: that failed.
struct Introduction {
  std::function<bool(Ticket&)> publish;      ///< the leader's ticket becomes everybody's
  std::function<bool(bool mine)> all_agree;  ///< whether `mine` is true on all
};

/// Collective: zeroed memory of `size` bytes, or null on all.
std::shared_ptr<SharedMemory> share_memory(std::size_t size, bool leader, const Introduction& introduction);

/// Memory of this process alone; null when there is none.
std::shared_ptr<SharedMemory> private_memory(std::size_t size);

}  // namespace pario::comm
