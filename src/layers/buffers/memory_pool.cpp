#include "layers/buffers/memory_pool.hpp"

#include <sys/mman.h>

#include <array>

#include "core/base/base.hpp"
#include "layers/buffers/blocked_signals.hpp"

namespace pario::buffers::memory_pool {
namespace {

struct Chunk {
  std::byte* memory;
  std::uint64_t bytes;
};

// Released memory is kept, because the first touch of a page costs as much as the copy into it.
constinit std::array<Chunk, 16> released{};
constinit std::uint64_t lock = 0;
constinit std::uint64_t most = 256 << 20;
constinit std::uint64_t in_use = 0;

/// Holds the lock; no signal handler of the program, which may need a buffer, waits for it.
class PoolLock {
 public:
  PoolLock() : hold_(lock) {}

 private:
  BlockedSignals blocked_;
  base::SpinLock hold_;
};

// The functions below are called with the lock held.

Chunk reuse(std::uint64_t bytes) {
  for (Chunk& chunk : released)
    if (chunk.memory != nullptr && chunk.bytes == bytes) {
      const Chunk found = chunk;
      chunk = {};
      return found;
    }
  return {};
}

bool keep_for_reuse(Chunk released_chunk) {
  for (Chunk& chunk : released)
    if (chunk.memory == nullptr) {
      chunk = released_chunk;
      return true;
    }
  return false;
}

/// Unmaps released memory, for memory of other sizes.
void unmap_released() {
  for (Chunk& chunk : released) {
    if (chunk.memory == nullptr) continue;
    base::unmap(chunk.memory, chunk.bytes);
    in_use -= chunk.bytes;
    chunk = {};
  }
}

bool has_room(std::uint64_t bytes) {
  if (in_use + bytes > most) unmap_released();
  return in_use + bytes <= most;
}

}  // namespace

void set_limit(std::uint64_t bytes) {
  const PoolLock hold;
  most = bytes;
}

std::uint64_t limit() {
  const PoolLock hold;
  return most;
}

std::byte* allocate(std::uint64_t bytes) {
  const PoolLock hold;
  if (const Chunk found = reuse(bytes); found.memory != nullptr) return found.memory;
  if (!has_room(bytes)) return nullptr;
  std::byte* memory = base::map_memory(bytes);
  if (memory == nullptr) return nullptr;
  // The first touch of small pages takes longer than the write of the bytes copied there.
  base::system_call(SYS_madvise, memory, bytes, MADV_HUGEPAGE);
  in_use += bytes;
  return memory;
}

void release(std::byte* memory, std::uint64_t bytes) {
  const PoolLock hold;
  if (keep_for_reuse({memory, bytes})) return;
  base::unmap(memory, bytes);
  in_use -= bytes;
}

bool reserve(std::uint64_t bytes) {
  const PoolLock hold;
  const bool room = has_room(bytes);
  if (room) in_use += bytes;
  return room;
}

void cancel_reservation(std::uint64_t bytes) {
  const PoolLock hold;
  in_use -= bytes;
}

void reset_in_child() { lock = 0; }

}  // namespace pario::buffers::memory_pool
