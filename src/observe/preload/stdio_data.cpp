// Wrappers of stream calls for blocks, strings and lines.
#include <cstring>

#include "observe/preload/streams.hpp"

using namespace pario::preload;

namespace {

/// The bytes written by a call that writes a string; -1: it failed.
std::int64_t bytes_of_text(int result, const char* text) {
  return result < 0 ? -1 : static_cast<std::int64_t>(std::strlen(text));
}
std::int64_t bytes_of_line(const char* line) {
  return line == nullptr ? 0 : static_cast<std::int64_t>(std::strlen(line));
}

}  // namespace

// These functions return only the number of whole items.
#define FREAD(name, locks)                                                                  \
  PARIO_WRAP(size_t, name, void* data, size_t size, size_t count, std::FILE* stream) {      \
    return trace_stream_transfer(                                                           \
        {.symbol = Symbol::name, .stream = stream, .asked = size * count, .locked = locks}, \
        [&] { return PARIO_REAL(name)(data, size, count, stream); },                        \
        [&](size_t items) { return static_cast<std::int64_t>(items * size); });             \
  }
#define FREAD_CHK(name, locks)                                                              \
  PARIO_WRAP(size_t, name, void* data, size_t capacity, size_t size, size_t count,          \
             std::FILE* stream) {                                                           \
    return trace_stream_transfer(                                                           \
        {.symbol = Symbol::name, .stream = stream, .asked = size * count, .locked = locks}, \
        [&] { return PARIO_REAL(name)(data, capacity, size, count, stream); },              \
        [&](size_t items) { return static_cast<std::int64_t>(items * size); });             \
  }
#define FWRITE(name, locks)                                                                      \
  PARIO_WRAP(size_t, name, const void* data, size_t size, size_t count, std::FILE* stream) {     \
    return trace_stream_transfer(                                                                \
        {.symbol = Symbol::name,                                                                 \
         .stream = stream,                                                                       \
         .asked = size * count,                                                                  \
         .data = data,                                                                           \
         .locked = locks},                                                                       \
        [&] { return PARIO_REAL(name)(data, size, count, stream); },                             \
        [&](size_t items) {                                                                      \
          return items == 0 && size * count != 0 ? -1 : static_cast<std::int64_t>(items * size); \
        });                                                                                      \
  }

FREAD(fread, true)
FREAD(fread_unlocked, false)
FREAD_CHK(__fread_chk, true)
FREAD_CHK(__fread_unlocked_chk, false)
FWRITE(fwrite, true)
FWRITE(fwrite_unlocked, false)

#define FGETS(name, locks)                                                         \
  PARIO_WRAP(char*, name, char* line, int size, std::FILE* stream) {               \
    return trace_stream_transfer(                                                  \
        {.symbol = Symbol::name, .stream = stream, .data = line, .locked = locks}, \
        [&] { return PARIO_REAL(name)(line, size, stream); }, bytes_of_line);      \
  }
#define FGETS_CHK(name, locks)                                                          \
  PARIO_WRAP(char*, name, char* line, size_t capacity, int size, std::FILE* stream) {   \
    return trace_stream_transfer(                                                       \
        {.symbol = Symbol::name, .stream = stream, .data = line, .locked = locks},      \
        [&] { return PARIO_REAL(name)(line, capacity, size, stream); }, bytes_of_line); \
  }
#define GETDELIM(name)                                                                         \
  PARIO_WRAP(ssize_t, name, char** line, size_t* capacity, int delimiter, std::FILE* stream) { \
    return trace_stream_transfer(                                                              \
        {.symbol = Symbol::name, .stream = stream},                                            \
        [&] { return PARIO_REAL(name)(line, capacity, delimiter, stream); },                   \
        [](ssize_t length) { return length < 0 ? 0 : static_cast<std::int64_t>(length); });    \
  }

FGETS(fgets, true)
FGETS(fgets_unlocked, false)
FGETS_CHK(__fgets_chk, true)
FGETS_CHK(__fgets_unlocked_chk, false)
GETDELIM(getdelim)
GETDELIM(__getdelim)

PARIO_WRAP(ssize_t, getline, char** line, size_t* capacity, std::FILE* stream) {
  return trace_stream_transfer(
      {.symbol = Symbol::getline, .stream = stream},
      [&] { return PARIO_REAL(getline)(line, capacity, stream); },
      [](ssize_t length) { return length < 0 ? 0 : static_cast<std::int64_t>(length); });
}

#define FPUTS(name, locks)                                                         \
  PARIO_WRAP(int, name, const char* text, std::FILE* stream) {                     \
    return trace_stream_transfer(                                                  \
        {.symbol = Symbol::name, .stream = stream, .data = text, .locked = locks}, \
        [&] { return PARIO_REAL(name)(text, stream); },                            \
        [&](int result) { return bytes_of_text(result, text); });                  \
  }
FPUTS(fputs, true)
FPUTS(fputs_unlocked, false)

PARIO_WRAP(int, puts, const char* text) {
  return trace_stream_transfer(
      {.symbol = Symbol::puts, .stream = stdout, .data = text},
      [&] { return PARIO_REAL(puts)(text); },
      [&](int result) { return result < 0 ? -1 : bytes_of_text(result, text) + 1; });
}
