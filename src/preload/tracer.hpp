// Starting, and the test that stands before everything else in a wrapper.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/base.hpp"
#include "preload/preload.hpp"
#include "trace/trace.hpp"

namespace pario::preload {

enum class State : int { unknown, starting, on, off };
extern std::atomic<State> state;

// Set by vfork.cpp in the child of a vfork, which shares the memory of its parent, thread-local memory included; the parent clears it.
extern "C" [[gnu::tls_model("initial-exec")]] constinit thread_local int pario_in_vfork_child;

/// True when calls are to be counted; starts the tracer at the first call.
inline bool active() {
  const State now = state.load(std::memory_order_acquire);
  if (now == State::on) [[likely]]
    return pario_in_vfork_child == 0;
  return now == State::unknown && start();
}

/// Does what is to be done inside the tracer, which must leave errno alone (our system calls do). False: the thread was inside already,
/// that is, a signal handler has interrupted it; nothing is done.
template <class Work>
bool in_tracer(Work work) {
  const trace::Guard guard;
  if (!guard.outermost()) [[unlikely]]
    return false;
  work();
  return true;
}

/// In the child of a fork; does its work once, however often it is called.
void begin_child();

}  // namespace pario::preload
