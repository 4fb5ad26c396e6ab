// A buffered file: the open descriptions of one file, and the parts that serve their calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "layers/buffers/file_context.hpp"
#include "layers/buffers/file_lock.hpp"
#include "layers/buffers/file_report.hpp"
#include "layers/buffers/read_ahead.hpp"
#include "layers/buffers/read_copies.hpp"
#include "layers/buffers/signal_writes.hpp"
#include "layers/buffers/write_behind.hpp"

namespace pario::buffers {

/// The mode of a file: served from buffers, or by the kernel alone.
struct BufferingState {
  bool active = false;
  bool paused = false;     ///< not active until the children that have its descriptors have ended
  bool forked = false;     ///< children may have copies of its descriptors
  bool inherited = false;  ///< from the parent of this process: never buffered
  Reason reason = Reason::none;  ///< the reason why it is not active
  std::uint32_t calls_while_paused = 0;
};

/// One buffered file. Lives in a static table of zeros (registry.hpp), without constructor: open()
/// starts a use of it, close() ends the use.
class BufferedFile {
 public:
  // The caller holds the registry's lock.
  /// Opens the file; false if there is no memory.
  bool open(int descriptor, const struct stat& status, const hints::StreamHints& hints,
            std::string_view path, const Origin& origin);
  void close();
  bool is_open() const { return open_.load(std::memory_order_acquire); }
  /// `since`: ticks at the beginning of the open call.
  void add_handle(Handle& handle, std::uint64_t since);
  /// Removes a handle; true if it was the last one, so that the file has to be closed.
  bool remove_handle(Handle& handle);
  /// Stops buffering in the child of a fork, which has copies of descriptors without handles.
  void become_inherited();

  // Calls of the program; contracts in buffers.hpp.
  long write(Handle& handle, std::span<const iovec> pieces, StartOffset at);
  long read(Handle& handle, std::span<const iovec> pieces, StartOffset at);
  long seek(Handle& handle, std::int64_t offset, int whence);
  std::uint64_t position(const Handle& handle);
  long flush(Handle& handle);
  void sync_to_kernel();
  void reload_offset(Handle& handle);
  bool keep_handle(Handle& handle, DirtyBytes dirty);
  /// Writes the dirty bytes before a descriptor is closed, and uses `other` for the handle from now
  /// on, if there is another descriptor (not negative). Returns the deferred error of a handle that
  /// ends.
  long close_descriptor(Handle& handle, int other);
  /// True in a signal handler that has interrupted a call on this file.
  bool is_interrupted() const { return held_monitor == &monitor_; }
  /// Stops buffering; `pause`: only until the children with the file's descriptors have ended.
  void stop_buffering(Reason reason, bool pause = false);
  /// Records that children get the file's descriptors.
  void mark_forked() { state_.forked = true; }

  // Calls of the background threads and of signal handlers.
  /// Performs the transfer of a queued buffer.
  void complete(Buffer& buffer);
  /// Enqueues expired dirty bytes, unless the file is in use; then publishes the statistics.
  void check(std::uint64_t now_ns);
  /// Writes the dirty bytes without a lock, also those that handlers have written.
  void flush_in_signal_handler();

  /// Adds the new statistics to the file's row in the log.
  void publish();
  /// Prints the figures on stderr, once, if the hints ask for it.
  void print_figures();
  Statistics statistics();

  const FileContext& context() const { return context_; }
  const BufferingState& state() const { return state_; }
  bool has_node_copy() const { return copies_.has_node_copy(); }

 private:
  class Call;

  long write_locked(FileLock& lock, Handle& handle, std::span<const iovec> pieces, StartOffset at);
  long read_locked(FileLock& lock, Handle& handle, std::span<const iovec> pieces,
                   std::uint64_t offset);
  std::optional<std::int64_t> find_seek_base(const Handle& handle, int whence);
  void sync_locked(FileLock& lock);
  void drop_unfinished_write(Handle& handle);
  void write_in_signal_handler(const SignalWrites::Write& write);
  bool resume_buffering();

  Monitor monitor_;
  std::atomic<bool> open_{false};
  BufferingState state_ = {};
  FileContext context_ = {};
  WriteBehind write_behind_ = {};
  ReadAhead read_ahead_ = {};
  ReadCopies copies_ = {};
  SignalWrites signal_writes_ = {};
  FileReport report_ = {};
};

}  // namespace pario::buffers
