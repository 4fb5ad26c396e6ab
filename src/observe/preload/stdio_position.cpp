// Wrappers of stream calls that set or return the position, or flush.
#include "observe/preload/streams.hpp"

using namespace pario::preload;
namespace trace = pario::trace;

PARIO_WRAP(off_t, ftello64, std::FILE* stream) {
  return trace_on_stream(Symbol::ftello64, stream, [&] { return PARIO_REAL(ftello64)(stream); });
}

namespace {

void count_seek(Symbol symbol, std::FILE* stream, Description& file, Span span, bool failed) {
  const off_t reached = failed ? -1 : PARIO_REAL(ftello64)(stream);
  const auto position = static_cast<std::uint64_t>(reached);
  const std::uint64_t before = reached < 0
                                   ? trace::kUnknownOffset
                                   : file.position.exchange(position, std::memory_order_relaxed);
  count_row(symbol, record_of(file, trace::Layer::stdio), span, failed,
            reached < 0 ? trace::kUnknownOffset : position, before);
}

template <class Real>
int trace_stream_seek(Symbol symbol, std::FILE* stream, Real real) {
  Description* file = active() ? description_of(stream) : nullptr;
  if (file == nullptr) return real();
  const LockedRunBreak run_break(stream, *file, true);
  const auto start = start_on(symbol, *file, trace::Layer::stdio);
  return count_call(start, real, [&](Span span, int result) {
    count_seek(symbol, stream, *file, span, is_failure(result));
  });
}

template <class Real>
int trace_flush(Symbol symbol, std::FILE* stream, Real real) {
  if (stream != nullptr) return trace_on_stream(symbol, stream, real);
  if (active()) count_pending_characters();
  return trace_alone(symbol, real);
}

}  // namespace

#define FSEEK(name, type)                                                               \
  PARIO_WRAP(int, name, std::FILE* stream, type offset, int whence) {                   \
    return trace_stream_seek(Symbol::name, stream,                                      \
                             [&] { return PARIO_REAL(name)(stream, offset, whence); }); \
  }
FSEEK(fseek, long)
FSEEK(fseeko, off_t)
FSEEK(fseeko64, off_t)

#define FSETPOS(name)                                                             \
  PARIO_WRAP(int, name, std::FILE* stream, const void* position) {                \
    return trace_stream_seek(Symbol::name, stream,                                \
                             [&] { return PARIO_REAL(name)(stream, position); }); \
  }
FSETPOS(fsetpos)
FSETPOS(fsetpos64)

PARIO_WRAP(void, rewind, std::FILE* stream) {
  trace_stream_seek(Symbol::rewind, stream, [&] { return PARIO_REAL(rewind)(stream), 0; });
}

PARIO_WRAP(long, ftell, std::FILE* stream) {
  return trace_on_stream(Symbol::ftell, stream, [&] { return PARIO_REAL(ftell)(stream); });
}
PARIO_WRAP(off_t, ftello, std::FILE* stream) {
  return trace_on_stream(Symbol::ftello, stream, [&] { return PARIO_REAL(ftello)(stream); });
}

#define FGETPOS(name)                                                           \
  PARIO_WRAP(int, name, std::FILE* stream, void* position) {                    \
    return trace_on_stream(Symbol::name, stream,                                \
                           [&] { return PARIO_REAL(name)(stream, position); }); \
  }
FGETPOS(fgetpos)
FGETPOS(fgetpos64)

#define FFLUSH(name)                                                                    \
  PARIO_WRAP(int, name, std::FILE* stream) {                                            \
    return trace_flush(Symbol::name, stream, [&] { return PARIO_REAL(name)(stream); }); \
  }
FFLUSH(fflush)
FFLUSH(fflush_unlocked)
