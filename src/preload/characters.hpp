// One-character stdio calls. They take a few nanoseconds and programs make them by the hundred million, so they are not counted one by
// one: while the stream's buffer has room, a call is passed on after a look at the buffer. The buffer pointer tells how many were made
// since it was last looked at; they are counted together, as a run, at the next call that does more (fills or flushes the buffer, is no
// one-character call), and at exit. One call in 256 is timed, for the time of the run. A process that is killed loses the
// runs of its open streams: at most one buffer each.
//
// The inlined putc_unlocked and getc_unlocked move the same pointer, and so are counted, too, from the first __overflow or __uflow on.
#pragma once

#include <cstdio>

#include "base/base.hpp"
#include "preload/descriptions.hpp"
#include "preload/tracer.hpp"

namespace pario::preload {

/// Where a stream stands in its buffer. (The flags and members of FILE are part of the C library's ABI.)
inline bool is_putting(const std::FILE* stream) { return (stream->_flags & 0x800) != 0; }
inline bool is_unbuffered(const std::FILE* stream) { return (stream->_flags & 0x2) != 0; }
inline bool is_wide(const std::FILE* stream) { return stream->_mode > 0; }
inline char* place_in(const std::FILE* stream) { return is_putting(stream) ? stream->_IO_write_ptr : stream->_IO_read_ptr; }

inline bool is_in_buffer(const std::FILE* stream, const char* place) {
  return place != nullptr && place >= stream->_IO_buf_base && place <= stream->_IO_buf_end;
}

/// The run is this stream's. Where several streams write to one description, only the first one has runs; the characters of the others are
/// counted one by one.
inline bool has_run(const std::FILE* stream, const Description& file) {
  return is_in_buffer(stream, file.characters.mark.load(std::memory_order_relaxed));
}

/// All before the stream's present place is counted. (After ungetc the place may lie outside the buffer: then there is no run for a while.)
inline void mark_counted(const std::FILE* stream, Description& file) {
  if (file.characters.mark.load(std::memory_order_relaxed) != nullptr && !has_run(stream, file)) return;
  char* place = place_in(stream);
  file.characters.writing.store(is_putting(stream), std::memory_order_relaxed);
  const bool runs = !is_unbuffered(stream) && !is_wide(stream) && is_in_buffer(stream, place);
  file.characters.mark.store(runs ? place : nullptr, std::memory_order_relaxed);
}

/// The slow half of count_run(), to be called in_tracer().
void count_waiting_run(std::FILE* stream, Description& file);

/// Counts the waiting run of a stream. The stream must be locked, or the program's own business.
inline void count_run(std::FILE* stream, Description& file) {
  const char* mark = file.characters.mark.load(std::memory_order_relaxed);
  if (mark != place_in(stream) && has_run(stream, file)) in_tracer([&] { count_waiting_run(stream, file); });
}

/// The stream's buffer goes: another stream may have runs.
inline void drop_run(const std::FILE* stream, Description& file) {
  if (has_run(stream, file)) file.characters.mark.store(nullptr, std::memory_order_relaxed);
}

/// Counts the waiting runs of all open streams.
void count_waiting_characters();

/// Holds a stream's lock, in a process with threads; an unlocked call leaves that to the program.
class StreamLock {
 public:
  StreamLock(std::FILE* stream, bool locked) : stream_(locked && !base::single_threaded() ? stream : nullptr) {
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

/// Stands around a counted call on a stream that nobody else moves meanwhile: counts the run before, and marks where the next one begins.
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

/// Both, for a call that is none of single characters. In a process with threads a stream without runs is left alone: so it needs no lock.
class LockedRunBreak {
 public:
  LockedRunBreak(std::FILE* stream, Description& file, bool locked)
      : LockedRunBreak(stream, file, locked, !locked || base::single_threaded() || has_run(stream, file)) {}

 private:
  LockedRunBreak(std::FILE* stream, Description& file, bool locked, bool needed)
      : lock_(stream, locked && needed), break_(needed ? stream : nullptr, file) {}

  StreamLock lock_;
  RunBreak break_;
};

}  // namespace pario::preload
