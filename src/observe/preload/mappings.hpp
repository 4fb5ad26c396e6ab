// The files of mappings, by address, for munmap and msync.
#pragma once

#include "core/trace/trace.hpp"

namespace pario::preload::mappings {

/// Adds a mapping by its first address. The table is bounded: further mappings are not added.
void add(const void* address, trace::Record* record);
/// The row of the file mapped at `address`; null: unknown.
trace::Record* find(const void* address);
void remove(const void* address);
/// Called in the child of a fork: replaces the records by those of its own log.
void renew_records();

}  // namespace pario::preload::mappings
