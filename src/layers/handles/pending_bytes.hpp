// Pending bytes: the unwritten bytes in the buffer of a kept stream (hint `lazyclose`). They are
// written before any other use of the file in this process.
#pragma once

#include <cstdio>

#include "layers/handles/table.hpp"

namespace pario::handles {

/// Writes the pending bytes of a file; false: it has none.
bool write_pending_of(const struct stat& file);
void write_pending_of(int descriptor);
void write_pending_of(int directory, const char* path);

/// Writes the pending bytes before a call on a path.
inline void write_pending(int directory, const char* path) {
  if (pending_entries.load(std::memory_order_acquire) != 0) [[unlikely]]
    write_pending_of(directory, path);
}
/// Writes the pending bytes of the file of a descriptor before a call on it.
inline void write_pending(int descriptor) {
  if (pending_entries.load(std::memory_order_acquire) != 0) [[unlikely]]
    write_pending_of(descriptor);
}
/// Writes the pending bytes of an entry that the caller has claimed.
void write_pending(Entry& entry);
/// Writes the pending bytes of the other entries of the same file, and those of all entries.
void write_pending_of_others(const Entry& entry);
void write_all_pending();

/// Marks the file of a descriptor as readable without a call that this layer sees: by a stream
/// without entry or by a mapping. From then on closing the file writes its bytes.
void mark_observable(int descriptor);
/// True if a stream can be kept with pending bytes. The caller has claimed the entry.
bool may_delay_bytes(const Entry& entry);

}  // namespace pario::handles
