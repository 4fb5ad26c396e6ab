// The memory of all buffers of the process: bounded and reused. All functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pario::buffers::memory_pool {

void set_limit(std::uint64_t bytes);
std::uint64_t limit();
/// Allocates pages; null if the limit is reached or the system has none.
std::byte* allocate(std::uint64_t bytes);
void release(std::byte* memory, std::uint64_t bytes);
/// Counts memory of another kind against the limit; false if it exceeds the limit.
bool reserve(std::uint64_t bytes);
void cancel_reservation(std::uint64_t bytes);
/// In the child of a fork: a thread of the parent may have held the lock.
void reset_in_child();

}  // namespace pario::buffers::memory_pool
