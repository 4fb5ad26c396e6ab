// Mapped files, read ahead: threads read them piece by piece into the kernel's cache, in one process of the node.
#pragma once

#include <cstdint>

#include "base/base.hpp"

namespace pario::stream::mapped {

/// `range` of the file open as `descriptor` has just been mapped at `address`. Does nothing where that is small, or too many are read
/// ahead.
void begin(const void* address, base::Extent range, int descriptor, std::uint64_t readers);
/// Nothing is mapped there any more.
void end(const void* address);
/// In the child of a fork, where the threads do not exist.
void forget();

}  // namespace pario::stream::mapped
