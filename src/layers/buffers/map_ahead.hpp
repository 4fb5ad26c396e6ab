// Read-ahead for mapped files (hint `map_ahead`): threads read a file in parts into the kernel's
// page cache, where the program faults or else in order, each part once per node. They read by
// their own descriptor and never touch the mapping, so that a truncated file raises no SIGBUS in
// them. The bound of the bytes is MapAllowance.
#pragma once

#include <cstdint>

#include "core/base/base.hpp"

namespace pario::buffers::map_ahead {

/// Starts to read `range` of the file open as `descriptor`, which has just been mapped at
/// `address`. Does nothing for ranges below 1 MiB, and while 16 mappings are read ahead.
void start(const void* address, base::Extent range, int descriptor, std::uint64_t readers);
/// Stops reading for the mapping at `address`, which is unmapped.
void stop(const void* address);
/// Stops all reading at the end of the process, and removes the flags if no other process has them.
void end();
/// Resets the state in the child of a fork, where the threads do not exist.
void reset_in_child();

}  // namespace pario::buffers::map_ahead
