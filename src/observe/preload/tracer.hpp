// The start of the tracer, and the test at the beginning of each wrapper.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/base.hpp"
#include "core/trace/trace.hpp"
#include "layers/chain/chain.hpp"
#include "observe/preload/preload.hpp"

namespace pario::preload {

enum class State : int { unknown, starting, on, off };
extern std::atomic<State> state;

/// True if calls are counted. Starts the tracer at the first call.
inline bool active() {
  const State now = state.load(std::memory_order_acquire);
  if (now == State::on) [[likely]]
    return pario_in_vfork_child == 0;
  return now == State::unknown && start();
}

/// Calls `work` inside the tracer; it must preserve errno, as base::system_call() does. False
/// without a call of `work` if the thread is inside already, because a signal handler has
/// interrupted it.
template <class Work>
bool in_tracer(Work work) {
  const trace::Guard guard;
  if (!guard.outermost()) [[unlikely]]
    return false;
  const trace::FirstCall measured;
  work();
  return true;
}

/// Completes the log (trace::finish) after a last look at mappings and rings.
void finish_tracing(std::uint64_t end_kind, int end_code);

/// Restarts the tracer in the child of a fork; does nothing when called again.
void begin_child();

}  // namespace pario::preload
