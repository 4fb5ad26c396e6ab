// Threads of pario's own. A further public header, because few modules start threads.
#pragma once

#include <pthread.h>

namespace pario::base {

/// Starts a thread that blocks all signals, which the program expects in its own threads; false if
/// there is none. `attributes` may be null.
bool start_thread(pthread_t& thread, const pthread_attr_t* attributes, void* (*function)(void*),
                  void* argument);
/// The same for a detached thread.
bool start_detached_thread(void* (*function)(void*), void* argument);

}  // namespace pario::base
