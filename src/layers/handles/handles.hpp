// Module handles: the topmost layer. For files with the setting `handles`, close() keeps the
// descriptor open for a while (a kept handle), and open() of the same name with the same flags
// returns it. The layer is above buffering, for which a kept handle is an open descriptor.
//
// With `lazyclose`, a file is kept although its bytes are not written yet: the bytes of streams are
// in their own buffers (pending_bytes.hpp), those of descriptors in the buffers of module buffers.
// Every other use of the file in this process finds the bytes in it.
//
// The program sees the same as without the layer: a kept handle is a closed descriptor, the file
// has all bytes, and a returned descriptor starts at offset 0. open() asks the kernel whether
// another process has changed the name (name_watch.hpp).
#pragma once

#include "layers/chain/chain.hpp"

namespace pario::handles {

/// True if a setting keeps handles. Reads the settings at the first call.
bool is_active();
/// The treatment of a function in column `handles` of treatments.def; null: none.
void* treatment_of(symbols::Symbol symbol);

/// Closes all kept handles, because another process may get copies of descriptors or descriptors
/// are exhausted. False: there were none.
bool close_all_kept();

/// Called around a fork, by handlers of pthread_atfork.
void before_fork();
void after_fork_in_child();

/// Closes all kept handles at the end of the program, and keeps no further ones.
void stop();

}  // namespace pario::handles
