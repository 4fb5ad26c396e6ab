#include "core/base/threads.hpp"

#include <signal.h>

namespace pario::base {

bool start_thread(pthread_t& thread, const pthread_attr_t* attributes, void* (*function)(void*),
                  void* argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread inherits the mask of its creator
  const bool started = pthread_create(&thread, attributes, function, argument) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

bool start_detached_thread(void* (*function)(void*), void* argument) {
  pthread_t thread;
  const bool started = start_thread(thread, nullptr, function, argument);
  if (started) pthread_detach(thread);
  return started;
}

}  // namespace pario::base
