// The memory of all buffers of the process: bounded, and used again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pario::stream::memory {

void set_limit(std::uint64_t bytes);
std::uint64_t limit();
/// Null: the limit is reached, or there is none. Thread-safe.
std::byte* take(std::uint64_t bytes);
void give_back(std::byte* memory, std::uint64_t bytes);
/// Memory of another kind within the limit; false: there is no room for it.
bool reserve(std::uint64_t bytes);
void release(std::uint64_t bytes);

}  // namespace pario::stream::memory
