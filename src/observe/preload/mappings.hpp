// The mapped files, by address: for munmap and msync, and to attribute page faults to files.
//
// Accesses to mapped memory cannot be intercepted. The bytes of a file that were touched are the
// growth of the resident bytes of its mappings (/proc/self/smaps), and the process's major faults
// are divided among its mapped files in proportion to that growth. All functions are called inside
// the tracer.
#pragma once

#include <cstddef>

#include "core/trace/trace.hpp"

namespace pario::preload::mappings {

/// True if no file is mapped, without a lock: most calls of munmap concern memory.
bool is_empty();
/// Adds a mapping. The table is bounded: further mappings are not added.
void add(const void* address, std::size_t size, trace::Record* record);
/// The row of the file that is mapped at `address`, anywhere in a mapping; null: unknown.
trace::Record* find(const void* address);
/// Removes a range, which may be a part of a mapping.
void remove(const void* address, std::size_t size);
/// Counts the resident bytes and major faults since the last look. Bounded: at most once a second,
/// or more often as long as looking takes less than 1 % of the time. `last`: look in any case.
void sample(bool last);
/// Called in the child of a fork: replaces the records by those of its own log.
void renew_records();

}  // namespace pario::preload::mappings
