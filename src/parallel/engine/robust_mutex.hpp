// Mutexes in memory that the ranks of a node share.
#pragma once

#include <pthread.h>

#include <span>

namespace pario::engine {

/// Makes the member `mutex` of each slot a mutex between processes. A rank that locks one whose
/// holder has died gets EOWNERDEAD, and then calls pthread_mutex_consistent().
template <class Slot>
void initialise_mutexes(std::span<Slot> slots) {
  pthread_mutexattr_t shared;
  ::pthread_mutexattr_init(&shared);
  ::pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
  for (Slot& slot : slots) ::pthread_mutex_init(&slot.mutex, &shared);
  ::pthread_mutexattr_destroy(&shared);
}

}  // namespace pario::engine
