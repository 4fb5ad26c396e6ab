// Programs that the traced program starts and that cannot be traced.
#pragma once

namespace pario::preload {

/// Called before a program is executed or spawned. Notes the first program of each process that
/// will not be traced, because its environment lacks pario's variables or it cannot preload a
/// library. `program` is read if it is a path. Works in the child of a vfork, too.
void note_unseen(const char* program, char* const* environment);

}  // namespace pario::preload
