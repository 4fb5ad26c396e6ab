// Streams of wide characters. What a call moves is counted in bytes, as the file has them: the length of its characters in the program's
// locale. Of formatted calls only the number of characters is known; they are counted as one byte each, which most are. Characters
// wait in a buffer of their own and are converted later, so that a stream's place in the file cannot tell.
#include <cwchar>

#include <climits>
#include <cstdarg>

#include "preload/format.hpp"
#include "preload/streams.hpp"

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

/// A call that nothing can be told of by the stream's byte buffer.
template <class Real, class Bytes>
auto wide_transfer(Symbol symbol, std::FILE* stream, Real real, Bytes bytes, bool formatted = false) {
  Description* file = active() ? description_of(stream) : nullptr;
  if (file == nullptr) return real();
  const StreamCall call{.symbol = symbol, .stream = stream, .formatted = formatted};
  return counted(real, [&](Span span, auto result) { count_stream(call, *file, span, bytes(result)); });
}

template <class Real>
std::wint_t getting(Symbol symbol, std::FILE* stream, Real real) {
  return wide_transfer(symbol, stream, real, [](std::wint_t got) { return got == WEOF ? 0 : bytes_of(got); });
}
template <class Real>
std::wint_t putting(Symbol symbol, std::FILE* stream, Real real) {
  return wide_transfer(symbol, stream, real, [](std::wint_t put) { return put == WEOF ? -1 : bytes_of(put); });
}
template <class Real>
wchar_t* getting_line(Symbol symbol, std::FILE* stream, Real real) {
  return wide_transfer(symbol, stream, real, [](const wchar_t* line) { return line == nullptr ? 0 : bytes_of(line); });
}
template <class Real>
int putting_text(Symbol symbol, const wchar_t* text, std::FILE* stream, Real real) {
  return wide_transfer(symbol, stream, real, [&](int result) { return result < 0 ? -1 : bytes_of(text); });
}
template <class Real>
int printing(Symbol symbol, std::FILE* stream, Real real) {
  return wide_transfer(symbol, stream, real, [](int length) { return std::int64_t{length}; }, true);
}

/// Where reading stands among the characters of a stream. (The first members of its wide data are part of the C library's ABI.)
struct WidePlace {
  const wchar_t *next, *end, *base;
  explicit WidePlace(const std::FILE* stream) : WidePlace(*reinterpret_cast<const WidePlace*>(stream->_wide_data)) {}
};

/// How many characters were read since, as long as the buffer was filled once at most in between.
std::int64_t consumed(const WidePlace& before, const std::FILE* stream) {
  const WidePlace now(stream);
  if (now.end == before.end && now.next >= before.next) return now.next - before.next;
  return (before.end - before.next) + (now.next - now.base);
}

template <class Real>
int scanning(Symbol symbol, std::FILE* stream, Real real) {
  if (!active() || stream->_mode < 0) return real();  // a stream of bytes has no wide data, and the call will fail
  const WidePlace before(stream);
  return wide_transfer(symbol, stream, real, [&](int) { return consumed(before, stream); }, true);
}

}  // namespace

#define GETWC(name)                                                                 \
  PARIO_WRAP(std::wint_t, name, std::FILE* stream) {                                \
    return getting(Symbol::name, stream, [&] { return PARIO_REAL(name)(stream); }); \
  }
#define GETWCHAR(name)                                                      \
  PARIO_WRAP(std::wint_t, name, void) {                                     \
    return getting(Symbol::name, stdin, [] { return PARIO_REAL(name)(); }); \
  }
#define PUTWC(name)                                                                            \
  PARIO_WRAP(std::wint_t, name, wchar_t character, std::FILE* stream) {                        \
    return putting(Symbol::name, stream, [&] { return PARIO_REAL(name)(character, stream); }); \
  }
#define PUTWCHAR(name)                                                                 \
  PARIO_WRAP(std::wint_t, name, wchar_t character) {                                   \
    return putting(Symbol::name, stdout, [&] { return PARIO_REAL(name)(character); }); \
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

#define FGETWS(name)                                                                                 \
  PARIO_WRAP(wchar_t*, name, wchar_t* line, int size, std::FILE* stream) {                           \
    return getting_line(Symbol::name, stream, [&] { return PARIO_REAL(name)(line, size, stream); }); \
  }
#define FGETWS_CHK(name)                                                                                   \
  PARIO_WRAP(wchar_t*, name, wchar_t* line, size_t room, int size, std::FILE* stream) {                    \
    return getting_line(Symbol::name, stream, [&] { return PARIO_REAL(name)(line, room, size, stream); }); \
  }
#define FPUTWS(name)                                                                                 \
  PARIO_WRAP(int, name, const wchar_t* text, std::FILE* stream) {                                    \
    return putting_text(Symbol::name, text, stream, [&] { return PARIO_REAL(name)(text, stream); }); \
  }
FGETWS(fgetws)
FGETWS(fgetws_unlocked)
FGETWS_CHK(__fgetws_chk)
FGETWS_CHK(__fgetws_unlocked_chk)
FPUTWS(fputws)
FPUTWS(fputws_unlocked)

VFORMAT(printing, vwprintf, stdout, (const wchar_t* format), (format))
VFORMAT(printing, vfwprintf, stream, (std::FILE * stream, const wchar_t* format), (stream, format))
VFORMAT(printing, __vwprintf_chk, stdout, (int flag, const wchar_t* format), (flag, format))
VFORMAT(printing, __vfwprintf_chk, stream, (std::FILE * stream, int flag, const wchar_t* format), (stream, flag, format))
FORMAT(printing, wprintf, vwprintf, stdout, (const wchar_t* format), (format))
FORMAT(printing, fwprintf, vfwprintf, stream, (std::FILE * stream, const wchar_t* format), (stream, format))
FORMAT(printing, __wprintf_chk, __vwprintf_chk, stdout, (int flag, const wchar_t* format), (flag, format))
FORMAT(printing, __fwprintf_chk, __vfwprintf_chk, stream, (std::FILE * stream, int flag, const wchar_t* format), (stream, flag, format))

#define SCAN(prefix)                                                                                         \
  VFORMAT(scanning, prefix##vwscanf, stdin, (const wchar_t* format), (format))                               \
  VFORMAT(scanning, prefix##vfwscanf, stream, (std::FILE * stream, const wchar_t* format), (stream, format)) \
  FORMAT(scanning, prefix##wscanf, prefix##vwscanf, stdin, (const wchar_t* format), (format))                \
  FORMAT(scanning, prefix##fwscanf, prefix##vfwscanf, stream, (std::FILE * stream, const wchar_t* format), (stream, format))

SCAN()
SCAN(__isoc99_)
SCAN(__isoc23_)
