// The threads that write buffers, and read them ahead, in the background.
#pragma once

#include "stream/buffer.hpp"

namespace pario::stream::writer {

/// Starts the thread, once per process; false: there is none.
bool start();
/// Hands a queued buffer over; its file's finish() follows. False: there is no thread.
bool push(Buffer& buffer);
/// Hands one over that is to be read; up to so many threads do that. Writes do not wait for them.
bool push_read(Buffer& buffer, std::uint64_t readers);
/// The thread calls `look` now and then.
void watch(void (*look)());
/// In the child of a fork, where the threads do not exist.
void forget();

}  // namespace pario::stream::writer
