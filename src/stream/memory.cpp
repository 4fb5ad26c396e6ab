#include "stream/memory.hpp"

#include <sys/mman.h>

#include <array>

#include "base/base.hpp"

namespace pario::stream::memory {
namespace {

struct Kept {
  std::byte* memory;
  std::uint64_t bytes;
};

// Memory that was touched once is worth keeping: the first touch costs as much as the copy.
constinit std::array<Kept, 16> kept{};
constinit std::uint64_t lock = 0;
constinit std::uint64_t most = 256 << 20;
constinit std::uint64_t in_use = 0;

Kept take_kept(std::uint64_t bytes) {
  for (Kept& one : kept)
    if (one.memory != nullptr && one.bytes == bytes) {
      const Kept found = one;
      one = {};
      return found;
    }
  return {};
}

bool keep(Kept what) {
  for (Kept& one : kept)
    if (one.memory == nullptr) {
      one = what;
      return true;
    }
  return false;
}

/// Memory of other sizes makes room. The lock is held.
void drop_all_kept() {
  for (Kept& one : kept) {
    if (one.memory == nullptr) continue;
    base::unmap(one.memory, one.bytes);
    in_use -= one.bytes;
    one = {};
  }
}

/// The lock is held.
bool has_room(std::uint64_t bytes) {
  if (in_use + bytes > most) drop_all_kept();
  return in_use + bytes <= most;
}

}  // namespace

void set_limit(std::uint64_t bytes) {
  const base::SpinLock hold(lock);
  most = bytes;
}

std::uint64_t limit() {
  const base::SpinLock hold(lock);
  return most;
}

std::byte* take(std::uint64_t bytes) {
  const base::SpinLock hold(lock);
  if (const Kept found = take_kept(bytes); found.memory != nullptr) return found.memory;
  if (!has_room(bytes)) return nullptr;
  std::byte* memory = base::map_memory(bytes);
  if (memory == nullptr) return nullptr;
  // The first touch of small pages takes longer than writing what is copied there.
  base::system_call(SYS_madvise, memory, bytes, MADV_HUGEPAGE);
  in_use += bytes;
  return memory;
}

bool reserve(std::uint64_t bytes) {
  const base::SpinLock hold(lock);
  const bool room = has_room(bytes);
  if (room) in_use += bytes;
  return room;
}

void release(std::uint64_t bytes) {
  const base::SpinLock hold(lock);
  in_use -= bytes;
}

void give_back(std::byte* memory, std::uint64_t bytes) {
  const base::SpinLock hold(lock);
  if (keep({memory, bytes})) return;
  base::unmap(memory, bytes);
  in_use -= bytes;
}

}  // namespace pario::stream::memory
