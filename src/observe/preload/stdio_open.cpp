// Wrappers of calls that open and close streams, and set their buffers.
#include <fcntl.h>

#include <cstring>

#include "core/base/base.hpp"
#include "layers/buffering/buffering.hpp"
#include "observe/preload/streams.hpp"

using namespace pario::preload;
namespace base = pario::base;
namespace trace = pario::trace;
using trace::Layer;

namespace {

/// The flags of open(2) for a mode.
int flags_of(const char* mode) {
  const bool update = std::strchr(mode, '+') != nullptr;
  const int access = update ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
  const int creation = mode[0] == 'w' ? O_CREAT | O_TRUNC : mode[0] == 'a' ? O_CREAT | O_APPEND : 0;
  return access | creation | (std::strchr(mode, 'e') != nullptr ? O_CLOEXEC : 0);
}

/// The start position of a stream: the end of the file when appending.
std::uint64_t start_position(std::FILE* stream, int flags) {
  if ((flags & O_APPEND) == 0) return 0;
  const long end = base::system_call(SYS_lseek, stream->_fileno, 0, SEEK_CUR);
  return end < 0 ? 0 : static_cast<std::uint64_t>(end);
}

void count_row_open(Symbol symbol, trace::Record* record, int flags, Span span, bool failed) {
  if (record == nullptr) return;
  trace::count(record, {.function = id_of(symbol),
                        .op = trace::Op::open,
                        .start = span.start,
                        .end = span.end,
                        .result = failed ? -1 : 0,
                        .open_flags = static_cast<std::uint32_t>(flags)});
}

int descriptor_of(const std::FILE* stream) { return stream == nullptr ? -1 : stream->_fileno; }

void count_stream_open(Symbol symbol, trace::Record* record, int flags, Span span,
                       std::FILE* stream) {
  const int descriptor = descriptor_of(stream);
  if (descriptor >= 0)
    if (Description* file = descriptors::attach(descriptor, Layer::stdio, record, flags))
      file->position.store(start_position(stream, flags), std::memory_order_relaxed);
  count_row_open(symbol, record, flags, span, stream == nullptr);
}

void forget_stream(const std::FILE* stream) {
  if (stream != nullptr) descriptors::forget(stream->_fileno);
}

template <class Real>
std::FILE* trace_stream_open(Symbol symbol, const char* name, const char* mode, Real real) {
  if (!active()) return real();
  const auto count = [&](Span span, std::FILE* stream) {
    trace::Record* record = record_of(Layer::stdio, AT_FDCWD, name, descriptor_of(stream));
    count_stream_open(symbol, record, flags_of(mode), span, stream);
  };
  return count_call(start_on_path(symbol, name), real, count, forget_stream);
}

template <class Real>
std::FILE* trace_temporary_stream(Symbol symbol, Real real) {
  if (!active()) return real();
  const auto count = [&](Span span, std::FILE* stream) {
    if (stream == nullptr) return;
    const base::Path path(stream->_fileno);
    trace::Record* record =
        path.is_known() ? record_of(Layer::stdio, path.view(), stream->_fileno) : nullptr;
    count_stream_open(symbol, record, O_RDWR | O_CREAT | O_EXCL, span, stream);
  };
  return count_call(start_alone(symbol), real, count, forget_stream);
}

/// Counts fdopen, which opens no file; from then on both the stream and calls on the descriptor
/// move the offset. Its event has the flags of the file in place of an offset, as one of an open
/// has.
void count_fdopen(Description& file, Span span, const std::FILE* stream) {
  const long offset =
      stream == nullptr ? -1 : base::system_call(SYS_lseek, stream->_fileno, 0, SEEK_CUR);
  file.shared.store(offset >= 0, std::memory_order_relaxed);
  file.position.store(offset < 0 ? 0 : static_cast<std::uint64_t>(offset),
                      std::memory_order_relaxed);
  const int flags = file.open_flags.load(std::memory_order_relaxed);
  count_row(Symbol::fdopen, record_of(file, Layer::stdio), span, stream == nullptr,
            static_cast<std::uint64_t>(flags));
}

/// Counts the pending run and the buffer of a stream before it is closed. Returns the row in which
/// its close is counted.
trace::Record* count_before_close(std::FILE* stream, Description& file) {
  trace::Record* record = nullptr;
  const LockedRunBreak run_break(stream, file, true);
  in_tracer([&] {
    record = record_of(file, Layer::stdio);
    note_buffer(stream, file);
  });
  return record;
}

trace::Record* forget_before_close(std::FILE* stream) {
  Description* file = description_of(stream);
  trace::Record* record = file == nullptr ? nullptr : count_before_close(stream, *file);
  if (file != nullptr) drop_run(stream, *file);
  descriptors::forget(stream->_fileno);
  return record;
}

/// Traces freopen: the old file is closed whether or not the new one opens.
template <class Real>
std::FILE* trace_reopen(Symbol symbol, const char* name, const char* mode, std::FILE* old,
                        Real real) {
  if (!active() || name == nullptr) return real();
  if (trace::Record* record = forget_before_close(old))
    in_tracer([&] { trace::add(record, &trace::Record::closes, 1); });
  return trace_stream_open(symbol, name, mode, real);
}

/// Traces a call that changes the buffer, which is recorded again at the next transfer.
template <class Real>
int trace_buffer_change(Symbol symbol, std::FILE* stream, Real real) {
  const int result = trace_on_stream(symbol, stream, real);
  Description* file = active() ? descriptors::find_known(stream->_fileno) : nullptr;
  if (file == nullptr) return result;
  file->buffer_seen.store(false, std::memory_order_relaxed);
  file->characters.mark.store(nullptr, std::memory_order_relaxed);
  return result;
}

}  // namespace

#define FOPEN(name)                                                         \
  PARIO_WRAP(std::FILE*, name, const char* path, const char* mode) {        \
    pario::buffering::fopen_caller = __builtin_return_address(0);           \
    return trace_stream_open(Symbol::name, path, mode,                      \
                             [&] { return PARIO_REAL(name)(path, mode); }); \
  }
#define FREOPEN(name)                                                                \
  PARIO_WRAP(std::FILE*, name, const char* path, const char* mode, std::FILE* old) { \
    return trace_reopen(Symbol::name, path, mode, old,                               \
                        [&] { return PARIO_REAL(name)(path, mode, old); });          \
  }
#define TMPFILE(name)                                                               \
  PARIO_WRAP(std::FILE*, name, void) {                                              \
    return trace_temporary_stream(Symbol::name, [] { return PARIO_REAL(name)(); }); \
  }

FOPEN(fopen)
FOPEN(fopen64)
FREOPEN(freopen)
FREOPEN(freopen64)
TMPFILE(tmpfile)
TMPFILE(tmpfile64)

PARIO_WRAP(std::FILE*, fdopen, int fd, const char* mode) {
  Description* file = active() ? descriptors::find(fd, Layer::stdio) : nullptr;
  if (file == nullptr) return PARIO_REAL(fdopen)(fd, mode);
  return count_call(
      start_on(Symbol::fdopen, *file, Layer::stdio), [&] { return PARIO_REAL(fdopen)(fd, mode); },
      [&](Span span, std::FILE* stream) { count_fdopen(*file, span, stream); });
}

PARIO_WRAP(int, fclose, std::FILE* stream) {
  if (!active()) return PARIO_REAL(fclose)(stream);
  trace::Record* record = forget_before_close(stream);
  const trace::CallStart start{
      .function = id_of(Symbol::fclose),
      .file = record == nullptr ? trace::kNoFile : trace::index_of(record)};
  return count_call(
      start, [&] { return PARIO_REAL(fclose)(stream); },
      [&](Span span, int result) { count_row(Symbol::fclose, record, span, is_failure(result)); });
}

// Despite its name, this function flushes all streams and closes none.
PARIO_WRAP(int, fcloseall, void) {
  if (active()) count_pending_characters();
  return trace_alone(Symbol::fcloseall, [] { return PARIO_REAL(fcloseall)(); });
}

PARIO_WRAP(int, setvbuf, std::FILE* stream, char* buffer, int mode, size_t size) {
  return trace_buffer_change(Symbol::setvbuf, stream,
                             [&] { return PARIO_REAL(setvbuf)(stream, buffer, mode, size); });
}
PARIO_WRAP(void, setbuf, std::FILE* stream, char* buffer) {
  trace_buffer_change(Symbol::setbuf, stream,
                      [&] { return PARIO_REAL(setbuf)(stream, buffer), 0; });
}
PARIO_WRAP(void, setbuffer, std::FILE* stream, char* buffer, size_t size) {
  trace_buffer_change(Symbol::setbuffer, stream,
                      [&] { return PARIO_REAL(setbuffer)(stream, buffer, size), 0; });
}
PARIO_WRAP(void, setlinebuf, std::FILE* stream) {
  trace_buffer_change(Symbol::setlinebuf, stream,
                      [&] { return PARIO_REAL(setlinebuf)(stream), 0; });
}
