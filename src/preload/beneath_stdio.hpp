// stdio streams: their own buffers made larger. The C library's flushes never pass a symbol, so the FILE stays what it is and gets a
// buffer of pario's.
#pragma once

#include <cstdio>

#include "preload/beneath.hpp"

namespace pario::preload::beneath {

/// A stream that is opened on a buffered file writes past the buffers: the file is left to the kernel.
void before_stream_open(const char* path);
/// Gives a stream the buffer that its name says.
void after_stream_open(const char* path, std::FILE* stream);
/// Who has called fopen: the C++ library opens a FILE for its streams, but reads and writes the descriptor, which is then what is buffered.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local const void* opener;
/// A stream is about to be closed: its bytes no longer wait, so that nobody else touches it; afterwards its buffer is taken back.
struct Given;
Given* known_as(const std::FILE* stream);
/// Null, too, for one that has no buffer of pario's.
Given* given_to(const std::FILE* stream);
void prepare_closing(Given* given);
void take_back(Given* given);
bool ignores_flush(std::FILE* stream);
/// Writes what a stream holds although the program has not asked for it; false, with errno: it is lost, which is said.
bool flush_behind(std::FILE* stream);
void prepare_standard_streams();
/// Writes what the buffers of streams hold, without a lock: for a handler of a deadly signal.
void rescue_streams();

template <Symbol, class>
struct OpeningStream;
template <Symbol symbol, class... Old>
struct OpeningStream<symbol, std::FILE*(const char*, const char*, Old...)> {
  static std::FILE* call(const char* path, const char* mode, Old... old) {
    before_stream_open(path);
    std::FILE* stream = next<symbol, std::FILE*>(path, mode, old...);
    after_stream_open(path, stream);
    return stream;
  }
};

template <Symbol, class>
struct ClosingStream;
template <Symbol symbol>
struct ClosingStream<symbol, int(std::FILE*)> {
  static int call(std::FILE* stream) {
    Given* given = known_as(stream);
    prepare_closing(given);
    const int lost = stream == nullptr ? 0 : leave_descriptor(stream->_fileno);
    const int result = next<symbol, int>(stream);
    take_back(given);
    return lost == 0 ? result : static_cast<int>(answer(-lost));
  }
};

template <Symbol, class>
struct KeepingBuffer;
/// What the settings say of a stream's buffer is stronger than what the program says.
template <Symbol symbol, class Result, class... Args>
struct KeepingBuffer<symbol, Result(std::FILE*, Args...)> {
  static Result call(std::FILE* stream, Args... args) {
    if (given_to(stream) != nullptr) return Result();
    return next<symbol, Result>(stream, args...);
  }
};

template <Symbol, class>
struct FlushingStream;
template <Symbol symbol>
struct FlushingStream<symbol, int(std::FILE*)> {
  static int call(std::FILE* stream) { return stream != nullptr && ignores_flush(stream) ? 0 : next<symbol, int>(stream); }
};

}  // namespace pario::preload::beneath
