// The kinds of wrapped stdio calls; those of descriptors are in calls.hpp.
#pragma once

#include <cstdio>

#include "observe/preload/calls.hpp"
#include "observe/preload/characters.hpp"

namespace pario::preload {

struct StreamCall {
  Symbol symbol;
  std::FILE* stream;
  std::uint64_t asked = 0;     ///< bytes; 0: the bytes moved (reads: at least one)
  const void* data = nullptr;  ///< the first byte moved, for samples; may be null
  bool locked = true;          ///< false: an _unlocked call
  bool formatted = false;
  std::uint32_t calls = 1;
};

/// The description of a stream; null: it is not traced or has no descriptor.
inline Description* description_of(const std::FILE* stream) {
  // Streams in memory and those of fopencookie have a negative number.
  return descriptors::find(stream->_fileno, trace::Layer::stdio);
}

/// The facts of a call before it is made, for count_call().
inline trace::CallStart start_of(const StreamCall& call, const Description& file) {
  return start_on(call.symbol, file, trace::Layer::stdio,
                  file.position.load(std::memory_order_relaxed), call.asked);
}

void count_stream(const StreamCall& call, Description& file, Span span, std::int64_t moved);
/// Records the size and mode of the stream's buffer.
void note_buffer(std::FILE* stream, Description& file);

/// True if a read of a stream has to fill its buffer first.
inline bool is_empty(const std::FILE* stream) {
  return stream->_IO_read_ptr >= stream->_IO_read_end;
}

/// Makes the real call, a read or write of a stream without a row, such as that of a pipe. A read
/// that fills the buffer may wait for another process.
template <class Real, class Bytes>
auto trace_untraced_stream(const StreamCall& call, Real real, Bytes bytes) {
  const trace::Op op = op_of(call.symbol);
  if (!active() || call.stream->_fileno < 0) return real();
  if (op != trace::Op::read || !is_empty(call.stream)) {
    const auto result = real();
    trace::count_untraced(op, bytes(result));
    return result;
  }
  return count_call(start_alone(call.symbol), real, [&](Span span, auto result) {
    trace::count_untraced(op, bytes(result));
    count_wait(Symbol::untraced_read, span, bytes(result));
  });
}

/// Traces a read or write of a stream. `bytes(result)`: the bytes moved; negative: it failed.
template <class Real, class Bytes>
auto trace_stream_transfer(const StreamCall& call, Real real, Bytes bytes) {
  Description* file = active() ? description_of(call.stream) : nullptr;
  if (file == nullptr) return trace_untraced_stream(call, real, bytes);
  const LockedRunBreak run_break(call.stream, *file, call.locked);
  return count_call(start_of(call, *file), real, [&](Span span, auto result) {
    count_stream(call, *file, span, bytes(result));
  });
}

/// Traces another call on a stream.
template <class Real>
auto trace_on_stream(Symbol symbol, std::FILE* stream, Real real) {
  Description* file = active() && stream != nullptr ? description_of(stream) : nullptr;
  if (file == nullptr) return real();
  const LockedRunBreak run_break(stream, *file, true);
  const auto start = start_on(symbol, *file, trace::Layer::stdio);
  return count_call(start, real, [&](Span span, auto result) {
    count_row(symbol, record_of(*file, trace::Layer::stdio), span, is_failure(result));
  });
}

}  // namespace pario::preload
