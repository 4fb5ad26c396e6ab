// The state of the tracer: one constant-initialised object, so that it works before constructors
// and after destructors.
#pragma once

#include <atomic>

#include "core/base/base.hpp"
#include "core/trace/events.hpp"
#include "core/trace/filesystems.hpp"
#include "core/trace/kernel.hpp"
#include "core/trace/log.hpp"
#include "core/trace/notes.hpp"
#include "core/trace/records.hpp"
#include "core/trace/sites.hpp"
#include "core/trace/threads.hpp"
#include "core/trace/trace.hpp"

namespace pario::trace {

/// The state of one log; a forked child begins with a fresh one.
struct State {
  bool on = false;
  Process* process = nullptr;
  Log log;
  Notes notes;
  Records records;
  FileSystems filesystems;
  Threads threads;
  EventWriter events;
  Sites sites;
  std::uint64_t next_anchor = 0;  ///< ticks at which the second anchor is due
  std::uint64_t anchor_lock = 0;
  KernelCounters kernel;
};
extern State state;

/// Adds to a field that several threads change.
inline void bump(std::uint64_t& field, std::uint64_t by = 1) {
  std::atomic_ref(field).fetch_add(by, std::memory_order_relaxed);
}

/// Returns the ticks per second as known so far; refresh_anchor() refines them.
inline std::uint64_t tick_rate() {
  return std::atomic_ref(process().ticks_per_second).load(std::memory_order_relaxed);
}

/// Marks this thread as inside a critical section of the tracer: I/O of a signal handler that
/// arrives meanwhile is not counted.
class Inside {
 public:
  Inside() { ++detail::context.tracer; }
  ~Inside() { --detail::context.tracer; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

/// The intercepted functions, by FunctionId.
std::span<const FunctionInfo> functions();

/// Moves the second anchor to now, and updates the kernel's counters where that is due; `force`: in
/// any case.
void refresh_anchor(bool force = false);

/// Prints to stderr, unless the user wants no messages.
void say(std::string_view text);

/// Writes the note with host, program, selected environment and, if `with_arguments`, all words of
/// the command.
void write_process_note(bool with_arguments);

}  // namespace pario::trace
