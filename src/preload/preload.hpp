// Room preload: the C library's POSIX and stdio functions, wrapped. A wrapper lets the real call happen, exactly as the program made it,
// and then tells room trace what it was. Nothing of the program is changed: results, errno, buffering, cancellation and signals are
// those of the real call.
//
// The symbols are in symbols.def. The library starts itself: by its constructor, or at the first call if one arrives before. It is
// configured by the environment (room hints); without a log directory every wrapper is one test and a jump.
//
// Three calls are passed through uncounted: those that arrive while the same thread is inside the tracer (a signal handler), those of the
// child of a vfork, which lives in its parent's memory, and those on descriptors that are no files (sockets, pipes and the like; stdin,
// stdout and stderr are always counted).
#pragma once

namespace pario::preload {

/// Reads the settings and starts the tracer, once; true when it is on.
bool start();

}  // namespace pario::preload
