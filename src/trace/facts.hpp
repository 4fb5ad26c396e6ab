// What is known of a file when it is first met.
#pragma once

#include "trace/trace.hpp"

namespace pario::trace {

/// Writes the note of a file's layout, if it has one.
void write_layout_note(const Record& record, const Layout& layout);
/// Gives its memory back.
void discard(const Layout& layout);

}  // namespace pario::trace
