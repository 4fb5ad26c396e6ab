// One-character stdio calls. They take a few nanoseconds and programs make them by the hundred
// million, so that they are not counted one by one. While the stream's buffer serves a call, the
// wrapper only compares pointers and passes it on. The buffer pointer shows the number of calls
// since its last check. They are counted together, as a run, at the next call that fills or flushes
// the buffer or is no one-character call, and at exit. One call in 256 is timed, for the time of
// the run. A process that is killed loses the runs of its open streams: at most one buffer each.
//
// The inlined putc_unlocked and getc_unlocked move the same pointer and are counted, too, from the
// first __overflow or __uflow on.
#pragma once

#include <cstdio>

#include "core/base/base.hpp"
#include "observe/preload/descriptions.hpp"
#include "observe/preload/tracer.hpp"

namespace pario::preload {

/// True if the stream writes. (The flags and members of FILE are part of the C library's ABI.)
inline bool is_putting(const std::FILE* stream) { return (stream->_flags & 0x800) != 0; }
inline bool is_unbuffered(const std::FILE* stream) { return (stream->_flags & 0x2) != 0; }
inline bool is_wide(const std::FILE* stream) { return stream->_mode > 0; }
/// The position of a stream in its buffer.
inline char* position_in(const std::FILE* stream) {
  return is_putting(stream) ? stream->_IO_write_ptr : stream->_IO_read_ptr;
}

inline bool is_in_buffer(const std::FILE* stream, const char* position) {
  return position != nullptr && position >= stream->_IO_buf_base && position <= stream->_IO_buf_end;
}

/// True if the run belongs to this stream. Of several streams on one description, only the first
/// one has runs; the characters of the others are counted one by one.
inline bool has_run(const std::FILE* stream, const Description& file) {
  return is_in_buffer(stream, file.characters.mark.load(std::memory_order_relaxed));
}

/// Marks all characters before the present position as counted. (After ungetc the position may be
/// outside the buffer: then there is no run for a while.)
inline void mark_counted(const std::FILE* stream, Description& file) {
  if (file.characters.mark.load(std::memory_order_relaxed) != nullptr && !has_run(stream, file))
    return;
  char* position = position_in(stream);
  file.characters.writing.store(is_putting(stream), std::memory_order_relaxed);
  const bool runs = !is_unbuffered(stream) && !is_wide(stream) && is_in_buffer(stream, position);
  file.characters.mark.store(runs ? position : nullptr, std::memory_order_relaxed);
}

/// The slow part of count_run(). Called in_tracer().
void count_pending_run(std::FILE* stream, Description& file);

/// Counts the pending run of a stream, which must be locked unless the program locks it.
inline void count_run(std::FILE* stream, Description& file) {
  const char* mark = file.characters.mark.load(std::memory_order_relaxed);
  if (mark != position_in(stream) && has_run(stream, file))
    in_tracer([&] { count_pending_run(stream, file); });
}

/// Ends the runs of a stream whose buffer is released: another stream may have runs.
inline void drop_run(const std::FILE* stream, Description& file) {
  if (has_run(stream, file)) file.characters.mark.store(nullptr, std::memory_order_relaxed);
}

/// Counts the pending runs of all open streams.
void count_pending_characters();

/// Locks a stream in a process with threads. For an unlocked call the program has to hold the lock.
class StreamLock {
 public:
  StreamLock(std::FILE* stream, bool locked)
      : stream_(locked && !base::single_threaded() ? stream : nullptr) {
    if (stream_ != nullptr) flockfile(stream_);
  }
  ~StreamLock() {
    if (stream_ != nullptr) funlockfile(stream_);
  }
  StreamLock(const StreamLock&) = delete;
  StreamLock& operator=(const StreamLock&) = delete;

 private:
  std::FILE* stream_;
};

/// Surrounds a counted call on a stream that no other thread uses: counts the run before the call,
/// and marks the beginning of the next one.
class RunBreak {
 public:
  RunBreak(std::FILE* stream, Description& file) : stream_(stream), file_(file) {
    if (stream_ != nullptr) count_run(stream_, file_);
  }
  ~RunBreak() {
    if (stream_ != nullptr) mark_counted(stream_, file_);
  }
  RunBreak(const RunBreak&) = delete;
  RunBreak& operator=(const RunBreak&) = delete;

 private:
  std::FILE* stream_;  // null: a stream without runs
  Description& file_;
};

/// StreamLock and RunBreak, for calls other than those of single characters. In a process with
/// threads, a stream without runs is neither locked nor marked.
class LockedRunBreak {
 public:
  LockedRunBreak(std::FILE* stream, Description& file, bool locked)
      : LockedRunBreak(stream, file, locked,
                       !locked || base::single_threaded() || has_run(stream, file)) {}

 private:
  LockedRunBreak(std::FILE* stream, Description& file, bool locked, bool needed)
      : lock_(stream, locked && needed), break_(needed ? stream : nullptr, file) {}

  StreamLock lock_;
  RunBreak break_;
};

}  // namespace pario::preload
