// The shape of a wrapped stdio call, as calls.hpp has it for descriptors.
#pragma once

#include <cstdio>

#include "preload/calls.hpp"
#include "preload/characters.hpp"

namespace pario::preload {

struct StreamCall {
  Symbol symbol;
  std::FILE* stream;
  std::uint64_t asked = 0;     ///< bytes; 0: as many as were moved (reads: at least one)
  const void* data = nullptr;  ///< of writes
  bool locked = true;          ///< false: an _unlocked call
  bool formatted = false;
  std::uint32_t calls = 1;
};

/// The description of a stream; null when it is not traced, or has no descriptor.
inline Description* description_of(const std::FILE* stream) {
  return descriptors::find(stream->_fileno, trace::Layer::stdio);  // a stream without one (memory, cookies) has a negative number
}

void count_stream(const StreamCall& call, Description& file, Span span, std::int64_t moved);
/// Puts the stream's buffer into its record.
void note_buffer(std::FILE* stream, Description& file);

/// A read or write of a stream. `bytes(result)`: what it moved; negative: it failed.
template <class Real, class Bytes>
auto stream_transfer(const StreamCall& call, Real real, Bytes bytes) {
  Description* file = active() ? description_of(call.stream) : nullptr;
  if (file == nullptr) return real();
  const LockedRunBreak run_break(call.stream, *file, call.locked);
  return counted(real, [&](Span span, auto result) { count_stream(call, *file, span, bytes(result)); });
}

/// Another call on a stream.
template <class Real>
auto on_stream(Symbol symbol, std::FILE* stream, Real real) {
  Description* file = active() && stream != nullptr ? description_of(stream) : nullptr;
  if (file == nullptr) return real();
  const LockedRunBreak run_break(stream, *file, true);
  return counted(real, [&](Span span, auto result) { count_row(symbol, record_of(*file, trace::Layer::stdio), span, failed(result)); });
}

}  // namespace pario::preload
