// What the tracer of this process holds: one object, constant-initialised, so that it works before constructors and after destructors.
#pragma once

#include <atomic>

#include "base/base.hpp"
#include "trace/events.hpp"
#include "trace/filesystems.hpp"
#include "trace/log.hpp"
#include "trace/notes.hpp"
#include "trace/records.hpp"
#include "trace/threads.hpp"
#include "trace/trace.hpp"

namespace pario::trace {

/// Everything that belongs to one log; a forked child begins with a fresh one.
struct State {
  bool on = false;
  Process* process = nullptr;
  Log log;
  Notes notes;
  Records records;
  FileSystems filesystems;
  Threads threads;
  EventWriter events;
  std::uint64_t next_anchor = 0;  ///< ticks at which the second anchor is due
  std::uint64_t anchor_lock = 0;
};
extern State state;

/// Adds to a field that several threads may add to.
inline void bump(std::uint64_t& field, std::uint64_t by = 1) { std::atomic_ref(field).fetch_add(by, std::memory_order_relaxed); }

/// Ticks per second, as known so far: refresh_anchor() makes it more exact now and then.
inline std::uint64_t tick_rate() { return std::atomic_ref(process().ticks_per_second).load(std::memory_order_relaxed); }

/// Marks this thread as inside the tracer's own critical sections: I/O of a signal handler that arrives here passes uncounted.
class Inside {
 public:
  Inside() { ++detail::context.tracer; }
  ~Inside() { --detail::context.tracer; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

/// Moves the second anchor to now.
void refresh_anchor();

/// To stderr, unless the user wants no messages.
void say(std::string_view text);

/// Notes host, program, selected environment and, `with_arguments`, all words of the command.
void write_process_note(bool with_arguments);

}  // namespace pario::trace
