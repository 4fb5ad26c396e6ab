// Keeping and returning handles. An entry of the table (table.hpp) begins when the program opens a
// file that may be kept.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <cstdio>

#include "layers/handles/name_watch.hpp"

namespace pario::handles {

/// True if a descriptor number is a kept handle: to the program it is closed.
bool is_kept(int descriptor);
/// The number to pass to the kernel: -1 for a kept handle, and for the layer's own descriptor.
inline int visible_number(int descriptor) {
  return is_kept(descriptor) || name_watch::is_own(descriptor) ? -1 : descriptor;
}

/// Returns a kept handle with this name and these flags (or mode) to the program; negative or null:
/// none is kept.
int reopen(int directory, const char* path, int flags);
std::FILE* reopen(const char* path, const char* mode);

/// Adds an entry for a descriptor or stream that the program has just opened, if it may be kept.
void record_open(int directory, const char* path, int flags, int descriptor);
void record_open(const char* path, const char* mode, std::FILE* stream);

/// The result of a close: the handle is kept, or the caller has to close it. `error`: errno of
/// bytes of an earlier opening that could not be written, which this close reports.
struct CloseResult {
  bool kept = false;
  int error = 0;
};
CloseResult keep_open(int descriptor);
CloseResult keep_open(std::FILE* stream);

/// Removes the entries of descriptors, so that they are not kept at close.
void forget(int descriptor);
void forget(unsigned first, unsigned last);
/// Records that a descriptor was opened or closed, if it is standard input, output or error: a
/// program that closes one of them may open a file to get its number.
void record_standard_number(int descriptor, bool open);
/// Forgets all entries in the child of a fork.
void forget_all();

/// Closes the kept handle with a number.
void close_kept(int descriptor);
/// Called before a name stops referring to its file: closes its kept handles, and marks its open
/// ones not to be kept. Expires all names if the name is not that of a regular file.
void expire_name(int directory, const char* path);
void expire_all_names();
/// Expires all names of an open file.
void expire_names_of(int descriptor);

}  // namespace pario::handles
