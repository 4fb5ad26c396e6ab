// The background threads: one writes queued buffers and performs periodic tasks, up to `readers`
// others read buffers ahead. All functions are thread-safe.
#pragma once

#include <cstdint>

#include "layers/buffers/buffer.hpp"

namespace pario::buffers::background {

/// The work of the threads, which a higher file of the module defines. Set before the first
/// start().
struct Work {
  void (*complete)(Buffer&);  ///< performs the transfer of a queued buffer
  void (*check_files)();      ///< every half second, before the task of set_periodic_task()
};
void set_work(const Work& work);

/// Starts the writing thread, once per process; false if there is none.
bool start();
/// Queues a buffer for the writing thread; false if there is none.
bool enqueue_write(Buffer& buffer);
/// Queues a buffer that is to be read, for up to `readers` threads, which writes do not wait for.
bool enqueue_read(Buffer& buffer, std::uint64_t readers);
void set_periodic_task(void (*task)());
/// Resets the queues in the child of a fork, where the threads do not exist.
void reset_in_child();

}  // namespace pario::buffers::background
