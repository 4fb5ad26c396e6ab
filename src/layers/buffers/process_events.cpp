// The public functions for forks, executed programs, and the end of the process.
#include "layers/buffers/audit.hpp"
#include "layers/buffers/background.hpp"
#include "layers/buffers/buffers.hpp"
#include "layers/buffers/child_processes.hpp"
#include "layers/buffers/map_ahead.hpp"
#include "layers/buffers/memory_pool.hpp"
#include "layers/buffers/registry.hpp"

namespace pario::buffers {
namespace {

/// True if this process was forked with the descriptor, as far as the registry shows.
bool is_inherited_descriptor(int descriptor) {
  struct stat status;
  if (system_calls.status(descriptor, status) != 0) return false;
  const BufferedFile* file = registry::find_file(file_id_of(status));
  return file != nullptr && file->state().inherited;
}

}  // namespace

void before_exec() {
  if (child_processes::has_inherited_descriptors() &&
      child_processes::stays_open_on_exec(is_inherited_descriptor))
    child_processes::mark_handed_on();
}

void before_spawn() { child_processes::mark_handed_on(); }

void before_fork() {
  using child_processes::Holders;
  registry::lock_for_fork();
  const bool are_earlier_unknown = child_processes::before_fork() == Holders::unknown;
  const bool is_followed = !is_idle() && child_processes::follow_next_child();
  registry::for_each_file([&](BufferedFile& file) {
    file.stop_buffering(Reason::fork, is_followed && !(are_earlier_unknown && file.state().paused));
    file.mark_forked();
  });
}

void after_fork_in_parent() {
  child_processes::after_fork_in_parent();
  registry::unlock_after_fork();
}

void after_fork_in_child() {
  child_processes::after_fork_in_child();
  registry::reset_in_child();
  audit::reset_in_child();
  node_copies::reset_in_child();
  process_copies::reset_in_child();
  map_ahead::reset_in_child();
  background::reset_in_child();
  memory_pool::reset_in_child();
  registry::unblock_signals_in_child();
}

void flush_at_end() {
  if (held_monitor != nullptr) return flush_in_signal_handler();
  flush_all();
}

void flush_in_signal_handler() {
  registry::for_each_file([](BufferedFile& file) { file.flush_in_signal_handler(); });
}

void end_buffering() {
  if (held_monitor != nullptr) return flush_in_signal_handler();
  stop_all_buffering(Reason::none);
  registry::for_each_file([](BufferedFile& file) {
    file.publish();
    file.print_figures();
  });
  node_copies::close_all();
  map_ahead::end();
}

}  // namespace pario::buffers
