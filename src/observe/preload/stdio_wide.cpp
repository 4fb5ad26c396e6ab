// Wrappers of stream calls for wide characters. A call counts the bytes of its characters in the
// program's locale, as they are in the file. For formatted calls only the number of characters is
// known; each counts as one byte, the length of most characters. The stream's position in the file
// does not show the bytes, because characters are first stored in a buffer of their own and
// converted later.
#include <cwchar>

#include <cstdarg>

#include "observe/preload/format.hpp"
#include "observe/preload/streams.hpp"

using namespace pario::preload;

namespace {

std::int64_t bytes_of(const wchar_t* text) {
  const pario::base::SavedErrno saved;
  std::mbstate_t state{};
  const wchar_t* rest = text;
  const std::size_t size = std::wcsrtombs(nullptr, &rest, 0, &state);
  return static_cast<std::int64_t>(size == static_cast<std::size_t>(-1) ? std::wcslen(text) : size);
}

std::int64_t bytes_of(std::wint_t character) {
  const wchar_t text[2] = {static_cast<wchar_t>(character), L'\0'};
  return character == L'\0' ? 1 : bytes_of(text);
}

/// Traces a call on a wide stream, whose byte buffer does not show the characters moved.
template <class Real, class Bytes>
auto trace_wide_transfer(Symbol symbol, std::FILE* stream, Real real, Bytes bytes,
                         bool formatted = false) {
  Description* file = active() ? description_of(stream) : nullptr;
  if (file == nullptr) return real();
  const StreamCall call{.symbol = symbol, .stream = stream, .formatted = formatted};
  return count_call(start_of(call, *file), real, [&](Span span, auto result) {
    count_stream(call, *file, span, bytes(result));
  });
}

template <class Real>
std::wint_t trace_get(Symbol symbol, std::FILE* stream, Real real) {
  return trace_wide_transfer(symbol, stream, real,
                             [](std::wint_t got) { return got == WEOF ? 0 : bytes_of(got); });
}
template <class Real>
std::wint_t trace_put(Symbol symbol, std::FILE* stream, Real real) {
  return trace_wide_transfer(symbol, stream, real,
                             [](std::wint_t put) { return put == WEOF ? -1 : bytes_of(put); });
}
template <class Real>
wchar_t* trace_get_line(Symbol symbol, std::FILE* stream, Real real) {
  return trace_wide_transfer(symbol, stream, real, [](const wchar_t* line) {
    return line == nullptr ? 0 : bytes_of(line);
  });
}
template <class Real>
int trace_put_text(Symbol symbol, const wchar_t* text, std::FILE* stream, Real real) {
  return trace_wide_transfer(symbol, stream, real,
                             [&](int result) { return result < 0 ? -1 : bytes_of(text); });
}
template <class Real>
int trace_print(Symbol symbol, std::FILE* stream, Real real) {
  return trace_wide_transfer(
      symbol, stream, real, [](int length) { return std::int64_t{length}; }, true);
}

/// The read position among the characters of a stream. (The first members of its wide data are part
/// of the C library's ABI.)
struct WidePosition {
  const wchar_t *next, *end, *base;
  explicit WidePosition(const std::FILE* stream)
      : WidePosition(*reinterpret_cast<const WidePosition*>(stream->_wide_data)) {}
};

/// The number of characters read since `before`, if the buffer was filled at most once.
std::int64_t characters_between(const WidePosition& before, const std::FILE* stream) {
  const WidePosition now(stream);
  if (now.end == before.end && now.next >= before.next) return now.next - before.next;
  return (before.end - before.next) + (now.next - now.base);
}

template <class Real>
int trace_scan(Symbol symbol, std::FILE* stream, Real real) {
  // A stream of bytes has no wide data, and the call will fail.
  if (!active() || stream->_mode < 0) return real();
  const WidePosition before(stream);
  return trace_wide_transfer(
      symbol, stream, real, [&](int) { return characters_between(before, stream); }, true);
}

}  // namespace

#define GETWC(name)                                                                   \
  PARIO_WRAP(std::wint_t, name, std::FILE* stream) {                                  \
    return trace_get(Symbol::name, stream, [&] { return PARIO_REAL(name)(stream); }); \
  }
#define GETWCHAR(name)                                                        \
  PARIO_WRAP(std::wint_t, name, void) {                                       \
    return trace_get(Symbol::name, stdin, [] { return PARIO_REAL(name)(); }); \
  }
#define PUTWC(name)                                                                              \
  PARIO_WRAP(std::wint_t, name, wchar_t character, std::FILE* stream) {                          \
    return trace_put(Symbol::name, stream, [&] { return PARIO_REAL(name)(character, stream); }); \
  }
#define PUTWCHAR(name)                                                                   \
  PARIO_WRAP(std::wint_t, name, wchar_t character) {                                     \
    return trace_put(Symbol::name, stdout, [&] { return PARIO_REAL(name)(character); }); \
  }
GETWC(fgetwc)
GETWC(fgetwc_unlocked)
GETWC(getwc)
GETWC(getwc_unlocked)
GETWCHAR(getwchar)
GETWCHAR(getwchar_unlocked)
PUTWC(fputwc)
PUTWC(fputwc_unlocked)
PUTWC(putwc)
PUTWC(putwc_unlocked)
PUTWCHAR(putwchar)
PUTWCHAR(putwchar_unlocked)

#define FGETWS(name)                                                             \
  PARIO_WRAP(wchar_t*, name, wchar_t* line, int size, std::FILE* stream) {       \
    return trace_get_line(Symbol::name, stream,                                  \
                          [&] { return PARIO_REAL(name)(line, size, stream); }); \
  }
#define FGETWS_CHK(name)                                                                    \
  PARIO_WRAP(wchar_t*, name, wchar_t* line, size_t capacity, int size, std::FILE* stream) { \
    return trace_get_line(Symbol::name, stream,                                             \
                          [&] { return PARIO_REAL(name)(line, capacity, size, stream); });  \
  }
#define FPUTWS(name)                                                       \
  PARIO_WRAP(int, name, const wchar_t* text, std::FILE* stream) {          \
    return trace_put_text(Symbol::name, text, stream,                      \
                          [&] { return PARIO_REAL(name)(text, stream); }); \
  }
FGETWS(fgetws)
FGETWS(fgetws_unlocked)
FGETWS_CHK(__fgetws_chk)
FGETWS_CHK(__fgetws_unlocked_chk)
FPUTWS(fputws)
FPUTWS(fputws_unlocked)

VFORMAT(trace_print, vwprintf, stdout, (const wchar_t* format), (format))
VFORMAT(trace_print, vfwprintf, stream, (std::FILE * stream, const wchar_t* format),
        (stream, format))
VFORMAT(trace_print, __vwprintf_chk, stdout, (int flag, const wchar_t* format), (flag, format))
VFORMAT(trace_print, __vfwprintf_chk, stream, (std::FILE * stream, int flag, const wchar_t* format),
        (stream, flag, format))
FORMAT(trace_print, wprintf, vwprintf, stdout, (const wchar_t* format), (format))
FORMAT(trace_print, fwprintf, vfwprintf, stream, (std::FILE * stream, const wchar_t* format),
       (stream, format))
FORMAT(trace_print, __wprintf_chk, __vwprintf_chk, stdout, (int flag, const wchar_t* format),
       (flag, format))
FORMAT(trace_print, __fwprintf_chk, __vfwprintf_chk, stream,
       (std::FILE * stream, int flag, const wchar_t* format), (stream, flag, format))

#define SCAN(prefix)                                                                            \
  VFORMAT(trace_scan, prefix##vwscanf, stdin, (const wchar_t* format), (format))                \
  VFORMAT(trace_scan, prefix##vfwscanf, stream, (std::FILE * stream, const wchar_t* format),    \
          (stream, format))                                                                     \
  FORMAT(trace_scan, prefix##wscanf, prefix##vwscanf, stdin, (const wchar_t* format), (format)) \
  FORMAT(trace_scan, prefix##fwscanf, prefix##vfwscanf, stream,                                 \
         (std::FILE * stream, const wchar_t* format), (stream, format))

SCAN()
SCAN(__isoc99_)
SCAN(__isoc23_)
