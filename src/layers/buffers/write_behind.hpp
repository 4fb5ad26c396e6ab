// Write-behind: the dirty bytes of one file, and their writing.
#pragma once

#include <cstdint>
#include <span>

#include "layers/buffers/file_context.hpp"
#include "layers/buffers/file_lock.hpp"
#include "layers/buffers/statistics.hpp"

namespace pario::buffers {

/// Collects the writes of the program in windows, hands full and expired windows to the background
/// thread, and defers errors to the handles. The caller holds the file's lock in all functions but
/// write_queued() and flush_in_signal_handler().
class WriteBehind {
 public:
  /// `context` outlives this object.
  void start(FileContext& context);
  /// Starts again after the kernel has served the file for a while.
  void restart();

  /// As buffers::write(). Large writes, and those that the kernel has to judge, go to the file
  /// directly, after the dirty bytes.
  long write(FileLock& lock, Handle& handle, std::span<const iovec> pieces, StartOffset at);

  /// True if the dirty bytes are to be appended: the kernel decides about their offsets.
  bool is_appending() const { return appending_; }

  /// Writes all dirty bytes: waits for queued buffers, and writes the others in this thread.
  void drain(FileLock& lock);
  void enqueue_all();
  /// Enqueues the buffers whose bytes have been dirty for longer than StreamHints::delay.
  void enqueue_expired(std::uint64_t now_ns);

  /// Writes a queued buffer in the background thread. False if a signal handler writes it.
  bool write_queued(Buffer& buffer, TransferResult& result) const;
  /// Counts the write of a buffer, keeps its error, and empties the buffer.
  void finish_write(Buffer& buffer, const TransferResult& result);

  /// Writes the dirty bytes in a signal handler that ends the process, without a lock.
  void flush_in_signal_handler();

 private:
  bool is_within_limit(std::uint64_t offset, std::uint64_t bytes) const;
  long write_through(FileLock& lock, Handle& handle, std::span<const iovec> pieces, StartOffset at);
  long append(FileLock& lock, Handle& handle, std::span<const iovec> pieces, std::uint64_t bytes);
  void copy_to_windows(FileLock& lock, Handle& handle, std::uint64_t offset,
                       std::span<const std::byte> data);
  Buffer& get_window(FileLock& lock, Handle& handle, std::uint64_t begin);
  Buffer* try_window(Handle& handle, std::uint64_t begin);
  Buffer& get_append_buffer(FileLock& lock, Handle& handle, std::uint64_t bytes);
  Buffer& start_filling(Buffer& buffer, Handle& handle, std::uint64_t begin);
  void enqueue(Buffer& buffer);
  void write_now(Buffer& buffer);
  static bool claim_in_signal_handler(Buffer& buffer);

  FileContext* context_ = nullptr;
  Buffer* last_ = nullptr;        ///< the buffer of the last write
  std::uint64_t size_limit_ = 0;  ///< the kernel refuses bytes beyond it (RLIMIT_FSIZE)
  bool appending_ = false;
};

}  // namespace pario::buffers
