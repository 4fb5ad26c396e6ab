// The life of a buffered file: opened, paused or no longer buffered, closed, and in the child of a
// fork.
#include "layers/buffers/buffered_file_call.hpp"
#include "layers/buffers/child_processes.hpp"

namespace pario::buffers {

bool BufferedFile::open(int descriptor, const struct stat& status, const hints::StreamHints& hints,
                        std::string_view path, const Origin& origin) {
  context_.hints = hints;
  if (!context_.windows.allocate(context_.hints, descriptor)) return false;
  context_.file = this;
  context_.backing.set(file_id_of(status), path, hints.writeback);
  context_.statistics = {};
  context_.clock = {};
  context_.handles.clear();
  state_ = {.active = true};
  write_behind_.start(context_);
  read_ahead_.start(context_);
  copies_.start(context_, status);
  report_.start(context_, origin);
  open_.store(true, std::memory_order_release);
  report_.log_unless_failed(Reason::none);
  return true;
}

void BufferedFile::close() {
  publish();
  const FileLock lock(monitor_);  // the background thread looks at open files
  copies_.detach();
  context_.windows.release();
  open_.store(false, std::memory_order_release);
}

void BufferedFile::add_handle(Handle& handle, std::uint64_t since) {
  const Call call(*this);
  ++context_.statistics.open.calls;
  context_.statistics.open.ticks += context_.clock.stop_late(since);
  handle.file = this;
  if (handle.writes) copies_.detach();
  context_.handles.add(handle);
}

bool BufferedFile::remove_handle(Handle& handle) {
  const Call call(*this);
  context_.handles.remove(handle);
  handle.file = nullptr;
  return context_.handles.is_empty() && !state_.inherited;
}

long BufferedFile::close_descriptor(Handle& handle, int other) {
  Call call(*this);
  CallTimer timer(context_.statistics.close, context_.clock, context_.hints.verbose);
  write_behind_.drain(call.lock());
  read_ahead_.discard_all(call.lock());
  timer.count(0);
  if (other >= 0) return handle.descriptor = other, 0;
  // Programs ignore the result of closing a file that they read.
  return handle.writes ? context_.handles.report_error(handle) : 0;
}

bool BufferedFile::keep_handle(Handle& handle, DirtyBytes dirty) {
  Call call(*this);
  if (!call.is_held() || !state_.active) return false;
  if (dirty == DirtyBytes::flush) write_behind_.drain(call.lock());
  if (dirty == DirtyBytes::enqueue) write_behind_.enqueue_all();
  read_ahead_.discard_all(call.lock());
  const bool has_nothing_to_write =
      dirty == DirtyBytes::enqueue && context_.windows.dirty_end() == 0;
  if (handle.error != 0 || has_nothing_to_write) return false;
  handle.rewound = handle.appends;
  handle.writes_once = dirty == DirtyBytes::flush && handle.write_calls <= 1;
  handle.write_calls = 0;
  handle.next_read = handle.sequential_reads = 0;
  if (!handle.appends) handle.offset = 0;
  return true;
}

// ---- ending buffering

/// Stops buffering. Reason::none: at the end of the process; an earlier reason stays.
void BufferedFile::stop_buffering(Reason reason, bool pause) {
  Call call(*this);
  if (!call.is_held() || (!state_.active && !state_.paused)) return;
  if (state_.active) sync_locked(call.lock());
  copies_.detach_process_copy();
  state_.active = false;  // before another thread gets the lock and fills a buffer again
  state_.paused = pause;
  if (reason == Reason::none) return;
  state_.reason = reason;
  report_.log_outcome(reason);
}

/// True if the file is paused and the children with copies of its descriptors have ended; checks
/// only at some of the calls. Until then the kernel has the offsets.
bool BufferedFile::resume_buffering() {
  constexpr std::uint32_t kAskAtOneOf = 8;
  if (!state_.paused || ++state_.calls_while_paused % kAskAtOneOf != 0) return false;
  using child_processes::Holders;
  const Holders holders = child_processes::find_holders();
  if (holders == Holders::alive) return false;
  state_.paused = state_.forked = false;
  if (holders != Holders::gone || !context_.handles.load_offsets(context_.backing.id()))
    return false;
  write_behind_.restart();
  state_.active = true;
  state_.reason = Reason::none;
  report_.log_outcome(Reason::none);
  return true;
}

void BufferedFile::become_inherited() {
  if (!is_open()) return;
  monitor_.reset_in_child();
  context_.windows.reset_in_child();
  context_.handles.clear();
  read_ahead_.reset_in_child();
  copies_.reset_in_child();
  signal_writes_.clear();
  report_.reset_in_child();
  state_.active = state_.paused = false;
  state_.inherited = true;
  state_.reason = Reason::fork;
}

}  // namespace pario::buffers
