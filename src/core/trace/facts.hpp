// The facts of a file at its first use.
#pragma once

#include "core/trace/trace.hpp"

namespace pario::trace {

/// Writes the note of a file's layout, if it has one.
void write_layout_note(const Record& record, const Layout& layout);
/// Releases the memory of a layout.
void discard(const Layout& layout);

}  // namespace pario::trace
