// Streams that rest with bytes that are not written yet (lazyclose): who looks at their files finds them written.
#pragma once

#include <cstdio>

#include "preload/kept_places.hpp"
#include "preload/kept_table.hpp"

namespace pario::preload::kept {

/// Writes what streams hold of a file, before it is looked at or changed by whatever call; false: there is nothing of it.
bool write_out_file(const struct stat& file);
void write_out_file(int descriptor);
void write_out_file(int directory, const char* path);

inline void write_out(int directory, const char* path) {
  if (unwritten.load(std::memory_order_acquire) != 0) [[unlikely]]
    write_out_file(directory, path);
}
/// A descriptor as the kernel knows it (`told`), its file as the program believes it is.
inline int ready(int descriptor) {
  const int number = told(descriptor);
  if (unwritten.load(std::memory_order_acquire) != 0) [[unlikely]]
    write_out_file(number);
  return number;
}
/// The stream of a place, which is the caller's.
void write_out(Place& place);
/// The same of a file that another place is about to be lent for, and of all.
void write_out_others(const Place& place);
void write_out_all();

/// The file of a descriptor can be read in ways that nobody sees: by a stream that has no place, or as memory. Closing waits for its bytes
/// from now on.
void note_stranger(int descriptor);
/// Whether the stream of a place, which is the caller's, may rest as it is.
bool may_wait(const Place& place);

}  // namespace pario::preload::kept
