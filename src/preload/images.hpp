// Programs that are started and that the library cannot go into.
#pragma once

namespace pario::preload {

/// To be called before a program is executed or spawned: notes, for the first of each process, that it will not be traced where its
/// environment lacks our variables, or where nothing can be preloaded into it. `program` is looked into when it is a path. Works in
/// the child of a vfork, too.
void note_unseen(const char* program, char* const* environment);

}  // namespace pario::preload
