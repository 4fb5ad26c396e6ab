// Read-ahead: reads windows of one file before the program asks for them.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <span>

#include "layers/buffers/file_context.hpp"
#include "layers/buffers/file_lock.hpp"

namespace pario::buffers {

/// Detects sequential readers by a few successive reads, reads whole windows for them and the next
/// windows in the background, and stops when the program asked for little of three successive
/// windows. Notices a change by another process after 100 milliseconds. The caller holds the file's
/// lock in all functions but fetch().
class ReadAhead {
 public:
  /// `context` outlives this object.
  void start(FileContext& context);

  /// Serves a read from a window read ahead, or from one that it reads now. False if read-ahead
  /// does not help this reader, or if the window lacks some of the bytes.
  bool read(FileLock& lock, Handle& handle, std::span<const iovec> pieces, std::uint64_t offset);
  /// Discards all windows, because the file changes.
  void discard_all(FileLock& lock) {
    if (windows_ != 0) [[unlikely]]
      discard_windows(lock);
  }
  void reset_in_child() { windows_ = 0; }

  /// Reads a window in a background thread.
  Statistics::Calls fetch(Buffer& buffer) const;
  /// Makes the window available after fetch().
  void finish_fetch(Buffer& buffer, const Statistics::Calls& calls);

 private:
  bool is_valid(const Handle& handle);
  void remember_file(const Handle& handle);
  bool detect_stream(Handle& handle, std::uint64_t offset, std::uint64_t bytes);
  Buffer* get_window(FileLock& lock, Handle& handle, std::uint64_t begin);
  void prefetch(Handle& handle, std::uint64_t begin);
  Buffer* start_window(Handle& handle, std::uint64_t begin, std::uint64_t current);
  Buffer* evict_first(std::uint64_t current);
  void discard(Buffer& buffer);
  void discard_windows(FileLock& lock);

  FileContext* context_ = nullptr;
  std::uint32_t windows_ = 0;         ///< buffers that hold or fetch bytes read ahead
  std::uint32_t wasted_windows_ = 0;  ///< in succession
  struct stat file_ = {};             ///< before the first of the windows was read
  bool is_file_known_ = false;        ///< a change since then shows in the times of file_
  std::uint64_t checked_ns_ = 0;      ///< the time of the last check for a change
};

}  // namespace pario::buffers
