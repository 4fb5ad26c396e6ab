// Which file is mapped where: for munmap and msync, that name only an address.
#pragma once

#include "trace/trace.hpp"

namespace pario::preload::mappings {

/// Remembers a mapping by its first address. When there are too many at a time, further ones are not remembered.
void add(const void* address, trace::Record* record);
/// Null when no file is known to be mapped from `address` on.
trace::Record* find(const void* address);
void remove(const void* address);
/// In the child of a fork: the records of its own log.
void renew_records();

}  // namespace pario::preload::mappings
