// The facts of a file at its first use.
#pragma once

#include <sys/stat.h>

#include "core/trace/trace.hpp"

namespace pario::trace {

/// Reads the status of a path without its file system: 0, the errno of a missing file, or -1: ask
/// the file system.
using StatusReader = int (*)(const char* path, struct stat& status);
/// Sets the function that the tracer asks before the file system.
void set_status_reader(StatusReader reader);

/// Writes the note of a file's layout, if it has one.
void write_layout_note(const Record& record, const RawLayout& layout);
/// Releases the memory of a layout.
void discard(const RawLayout& layout);

}  // namespace pario::trace
