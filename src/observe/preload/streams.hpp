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

/// Traces a read or write of a stream. `bytes(result)`: the bytes moved; negative: it failed.
template <class Real, class Bytes>
auto trace_stream_transfer(const StreamCall& call, Real real, Bytes bytes) {
  Description* file = active() ? description_of(call.stream) : nullptr;
  if (file == nullptr) {
    auto result = real();
    if (active() && call.stream->_fileno >= 0)
      trace::count_untraced(op_of(call.symbol), bytes(result));
    return result;
  }
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
