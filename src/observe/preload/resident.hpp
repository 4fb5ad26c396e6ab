// The kernel's view of the memory of this process.
#pragma once

#include <cstdint>

namespace pario::preload::mappings {

/// Page faults of this process that needed I/O.
std::uint64_t major_faults();

/// Calls `f(begin, bytes)` with the first address and the resident bytes of each mapping in
/// /proc/self/smaps. False: it cannot be read. One thread at a time.
bool read_resident(void (*f)(std::uintptr_t begin, std::uint64_t bytes));

}  // namespace pario::preload::mappings
