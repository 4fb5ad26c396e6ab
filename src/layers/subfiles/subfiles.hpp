// Module subfiles: the layer that shows files of several subfiles (docs/mpiio.md) as one file.
// A program that opens one to read it gets a copy of all bytes, a file without a name; the stat
// functions return the size of the whole. Only empty files are looked at, because a file that
// consists of subfiles is empty itself.
#pragma once

#include "layers/chain/chain.hpp"

namespace pario::subfiles {

/// True if the setting asks for it. Reads the settings at the first call.
bool is_active();
/// Frees the lock of a thread that the child of a fork does not have. Called by a handler of
/// pthread_atfork.
void after_fork_in_child();
/// The treatment of a function in column `subfiles` of treatments.def; null: none.
void* treatment_of(symbols::Symbol symbol);

}  // namespace pario::subfiles
