// Wrappers of stream calls for single characters (characters.hpp).
#include <algorithm>

#include "observe/preload/streams.hpp"

using namespace pario::preload;
namespace trace = pario::trace;

namespace {

bool has_space(const std::FILE* stream, const Description& file) {
  return stream->_IO_write_ptr < stream->_IO_write_end && has_run(stream, file) &&
         file.characters.writing.load(std::memory_order_relaxed);
}
bool has_data(const std::FILE* stream, const Description& file) {
  return stream->_IO_read_ptr < stream->_IO_read_end && has_run(stream, file) &&
         !file.characters.writing.load(std::memory_order_relaxed);
}

/// The smallest difference of two readings of the clock, in ticks.
std::uint32_t cost_of_ticks() {
  static constinit std::atomic<std::uint32_t> cost{0};
  if (const std::uint32_t known = cost.load(std::memory_order_relaxed)) return known;
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < 16; ++i) {
    const std::uint64_t before = trace::ticks();
    least = std::min(least, trace::ticks() - before);
  }
  cost.store(static_cast<std::uint32_t>(least + 1), std::memory_order_relaxed);
  return static_cast<std::uint32_t>(least + 1);
}

/// A call that a buffer serves takes as long as a few readings of the clock. In a longer one the
/// process waited for its processor, which would count 256 times.
constexpr std::uint32_t kInterrupted = 64;

template <class Real>
int time_in_run(CharacterRun& run, Real real) {
  const std::uint64_t start = trace::ticks();
  const int result = real();
  const std::uint64_t spent = trace::ticks() - start;
  if (spent > std::uint64_t{kInterrupted} * cost_of_ticks()) return result;
  run.sampled_calls.fetch_add(1, std::memory_order_relaxed);
  run.sampled_ticks.fetch_add(
      static_cast<std::uint32_t>(spent - std::min<std::uint64_t>(spent, cost_of_ticks())),
      std::memory_order_relaxed);
  return result;
}

/// Makes a call that is served from the stream's buffer; it is counted with its run.
template <class Real>
int count_in_run(Symbol symbol, const char* position, CharacterRun& run, Real real) {
  if (run.symbol.load(std::memory_order_relaxed) != id_of(symbol))
    run.symbol.store(id_of(symbol), std::memory_order_relaxed);
  constexpr std::uintptr_t kSampled = 255;  // addresses with these bits zero
  return (reinterpret_cast<std::uintptr_t>(position) & kSampled) == 0 ? time_in_run(run, real)
                                                                      : real();
}

template <class Real>
int trace_character(const StreamCall& call, Description& file, Real real) {
  const RunBreak run_break(call.stream, file);
  const std::int64_t failure = op_of(call.symbol) == trace::Op::write ? -1 : 0;
  file.characters.symbol.store(id_of(call.symbol), std::memory_order_relaxed);
  return count_call(start_of(call, file), real, [&](Span span, int result) {
    count_stream(call, file, span, result == EOF ? failure : 1);
  });
}

/// The bytes that a call has read into the buffer of its stream.
std::int64_t bytes_of_fill(const std::FILE* stream, int character) {
  return character == EOF ? 0 : 1 + (stream->_IO_read_end - stream->_IO_read_ptr);
}

template <class Real>
int trace_get(Symbol symbol, std::FILE* stream, bool locked, Real real) {
  Description* file = active() ? description_of(stream) : nullptr;
  if (file == nullptr)
    return is_empty(stream)
               ? trace_untraced_stream({.symbol = symbol, .stream = stream}, real,
                                       [&](int result) { return bytes_of_fill(stream, result); })
               : real();
  const StreamLock lock(stream, locked);
  if (has_data(stream, *file))
    return count_in_run(symbol, stream->_IO_read_ptr, file->characters, real);
  return trace_character({.symbol = symbol, .stream = stream, .asked = 1}, *file, real);
}

template <class Real>
int trace_put(Symbol symbol, int character, std::FILE* stream, bool locked, Real real) {
  Description* file = active() ? description_of(stream) : nullptr;
  if (file == nullptr) return real();
  const StreamLock lock(stream, locked);
  if (has_space(stream, *file))
    return count_in_run(symbol, stream->_IO_write_ptr, file->characters, real);
  const char byte = static_cast<char>(character);
  return trace_character({.symbol = symbol, .stream = stream, .asked = 1, .data = &byte}, *file,
                         real);
}

}  // namespace

#define GETC(name, locked)                                                                    \
  PARIO_WRAP(int, name, std::FILE* stream) {                                                  \
    return trace_get(Symbol::name, stream, locked, [&] { return PARIO_REAL(name)(stream); }); \
  }
#define GETCHAR(name, locked)                                                         \
  PARIO_WRAP(int, name, void) {                                                       \
    return trace_get(Symbol::name, stdin, locked, [] { return PARIO_REAL(name)(); }); \
  }
#define PUTC(name, locked)                                                 \
  PARIO_WRAP(int, name, int character, std::FILE* stream) {                \
    return trace_put(Symbol::name, character, stream, locked,              \
                     [&] { return PARIO_REAL(name)(character, stream); }); \
  }
#define PUTCHAR(name, locked)                                      \
  PARIO_WRAP(int, name, int character) {                           \
    return trace_put(Symbol::name, character, stdout, locked,      \
                     [&] { return PARIO_REAL(name)(character); }); \
  }

GETC(fgetc, true)
GETC(getc, true)
GETC(_IO_getc, true)
GETC(fgetc_unlocked, false)
GETC(getc_unlocked, false)
GETC(__uflow, false)
GETCHAR(getchar, true)
GETCHAR(getchar_unlocked, false)
PUTC(fputc, true)
PUTC(putc, true)
PUTC(_IO_putc, true)
PUTC(fputc_unlocked, false)
PUTC(putc_unlocked, false)
PUTCHAR(putchar, true)
PUTCHAR(putchar_unlocked, false)

PARIO_WRAP(int, __overflow, std::FILE* stream, int character) {
  return trace_put(Symbol::__overflow, character, stream, false,
                   [&] { return PARIO_REAL(__overflow)(stream, character); });
}

PARIO_WRAP(int, ungetc, int character, std::FILE* stream) {
  const int result = trace_on_stream(Symbol::ungetc, stream,
                                     [&] { return PARIO_REAL(ungetc)(character, stream); });
  Description* file = active() && result != EOF ? description_of(stream) : nullptr;
  if (file != nullptr) file->position.fetch_sub(1, std::memory_order_relaxed);
  return result;
}
