// Macros for wrappers of formatted functions, of bytes and of wide characters. `shape` is a
// function (symbol, stream or descriptor, real).
#pragma once

#include <cstdarg>

#include "observe/preload/wrap.hpp"

// Each line: the function, the va_list function that does the same, the stream, the parameters
// before "...", the arguments before the va_list.
#define FORMAT(shape, name, next, where, parameters, arguments)                                   \
  PARIO_WRAP(int, name, PARIO_LIST parameters, ...) {                                             \
    va_list rest;                                                                                 \
    va_start(rest, format);                                                                       \
    const int result =                                                                            \
        shape(Symbol::name, where, [&] { return PARIO_REAL(next)(PARIO_LIST arguments, rest); }); \
    va_end(rest);                                                                                 \
    return result;                                                                                \
  }
#define VFORMAT(shape, name, where, parameters, arguments)                      \
  PARIO_WRAP(int, name, PARIO_LIST parameters, va_list rest) {                  \
    return shape(Symbol::name, where,                                           \
                 [&] { return PARIO_REAL(name)(PARIO_LIST arguments, rest); }); \
  }
#define PARIO_LIST(...) __VA_ARGS__
