// Module preload: wrappers of the POSIX and stdio functions of the C library (module symbols). A
// wrapper makes the real call exactly as the program does, and then passes it to module trace. The
// program behaves as without the wrapper: the real call decides results, errno, buffering,
// cancellation and signals.
//
// The library starts in its constructor, or at the first call if that is earlier. Environment
// variables configure it (module hints). Without a log directory, a wrapper is one test and a jump.
//
// Three kinds of calls are not counted: those that arrive while the same thread is inside the
// tracer (in a signal handler), those of the child of a vfork, which shares its parent's memory,
// and those on descriptors that are no files, such as sockets, of which only the bytes are, and
// pipes (stdin, stdout and stderr are always counted).
#pragma once

namespace pario::preload {

/// Reads the settings and starts the tracer, once; true if it is on.
bool start();

}  // namespace pario::preload
