// stdio streams with larger buffers. The C library flushes without calling interposed functions, so
// that the FILE itself gets a buffer of this layer.
#pragma once

#include <cstdio>

#include "layers/buffering/descriptors.hpp"

namespace pario::buffering {

/// Stops buffering a file that is about to be opened as a stream, because the stream would bypass
/// the buffers.
void before_stream_open(const char* path);
/// Sets the buffer of a stream that has just been opened, if a setting asks for it.
void after_stream_open(const char* path, std::FILE* stream);

/// True if the file of a descriptor is open as a stream of the table.
bool is_open_as_stream(int descriptor);

struct StreamEntry;
/// The entry of a stream in the table of streams with settings; null: none.
StreamEntry* find_entry(const std::FILE* stream);
/// Before a stream is closed: the background thread no longer flushes it.
void stop_periodic_flush(StreamEntry* entry);
/// After a stream is closed: removes its entry and releases its buffer.
void remove_entry(StreamEntry* entry);
/// True if the setting of a stream ignores flushes of the program (hint `ignoreflush`).
bool ignores_flush(std::FILE* stream);

void set_standard_stream_buffers();
/// Writes the pending bytes of all streams without a lock, in a handler of a deadly signal and at
/// an end that does not flush streams.
void write_pending_bytes();
/// Remembers that the program makes a stream with a buffer of this layer unbuffered, line-buffered
/// or fully buffered (setvbuf).
void set_program_mode(std::FILE* stream, int mode);
/// Before a fork, after which two processes write to the same files: flushes the streams that no
/// other thread uses at this moment, and gives them back the buffers that the program set.
void restore_all_streams();
/// Flushes the streams that no other thread uses at this moment.
void flush_streams();
/// In the child of a fork: a thread of the parent may have held the lock of the table.
void reset_streams_in_child();

/// fopen and freopen.
struct OpenStream {
  static std::FILE* call(auto next, const char* path, const char* mode, auto... old) {
    before_stream_open(path);
    std::FILE* stream = next(path, mode, old...);
    after_stream_open(path, stream);
    return stream;
  }
};

/// fclose.
struct CloseStream {
  static int call(auto next, std::FILE* stream) {
    StreamEntry* entry = find_entry(stream);
    stop_periodic_flush(entry);
    const int error = stream == nullptr ? 0 : close_descriptor(stream->_fileno);
    const int result = next(stream);
    remove_entry(entry);
    return error == 0 ? result : static_cast<int>(set_errno(-error));
  }
};

/// setvbuf and its variants: the setting of a stream overrides the program's buffer.
struct KeepBuffer {
  static auto call(auto next, std::FILE* stream, auto... args) {
    if (!has_buffer(stream)) return next(stream, args...);
    set_program_mode(stream, mode_of(args...));
    return decltype(next(stream, args...))();
  }
  static int mode_of(const char*, int mode, size_t) { return mode; }
  static int mode_of(const char* buffer, auto...) { return buffer == nullptr ? _IONBF : _IOFBF; }
  static int mode_of() { return _IOLBF; }
};

/// fflush.
struct FlushStream {
  static int call(auto next, std::FILE* stream) {
    return stream != nullptr && ignores_flush(stream) ? 0 : next(stream);
  }
};

}  // namespace pario::buffering
