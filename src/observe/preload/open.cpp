// Wrappers of calls that open descriptors.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstdarg>

#include "core/base/base.hpp"
#include "observe/preload/calls.hpp"

using namespace pario::preload;
namespace base = pario::base;

namespace {

bool has_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

/// Traces a call whose file name is known only from the descriptor: mkstemp changes its argument,
/// and memory files have no path.
template <class Real>
int trace_unnamed_open(Symbol symbol, int flags, Real real) {
  if (!active()) return real();
  const auto count = [&](Span span, int descriptor) {
    const base::Path path(descriptor);
    if (path.is_known()) count_open(symbol, AT_FDCWD, path.c_str(), flags, span, descriptor);
  };
  return count_call(start_alone(symbol), real, count, descriptors::forget);
}

constexpr int kTemporaryFlags = O_RDWR | O_CREAT | O_EXCL;

}  // namespace

// The mode is an argument only if the call may create a file.
#define MODE_OF(last)                                   \
  mode_t mode = 0;                                      \
  if (has_mode(flags)) {                                \
    va_list arguments;                                  \
    va_start(arguments, last);                          \
    mode = static_cast<mode_t>(va_arg(arguments, int)); \
    va_end(arguments);                                  \
  }

#define OPEN(name)                                                          \
  PARIO_WRAP(int, name, const char* path, int flags, ...) {                 \
    MODE_OF(flags)                                                          \
    return trace_open(Symbol::name, AT_FDCWD, path, flags,                  \
                      [&] { return PARIO_REAL(name)(path, flags, mode); }); \
  }
#define OPENAT(name)                                                                   \
  PARIO_WRAP(int, name, int directory, const char* path, int flags, ...) {             \
    MODE_OF(flags)                                                                     \
    return trace_open(Symbol::name, directory, path, flags,                            \
                      [&] { return PARIO_REAL(name)(directory, path, flags, mode); }); \
  }
#define OPEN_2(name)                                                  \
  PARIO_WRAP(int, name, const char* path, int flags) {                \
    return trace_open(Symbol::name, AT_FDCWD, path, flags,            \
                      [&] { return PARIO_REAL(name)(path, flags); }); \
  }
#define OPENAT_2(name)                                                           \
  PARIO_WRAP(int, name, int directory, const char* path, int flags) {            \
    return trace_open(Symbol::name, directory, path, flags,                      \
                      [&] { return PARIO_REAL(name)(directory, path, flags); }); \
  }
#define CREAT(name)                                                               \
  PARIO_WRAP(int, name, const char* path, mode_t mode) {                          \
    return trace_open(Symbol::name, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, \
                      [&] { return PARIO_REAL(name)(path, mode); });              \
  }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
OPEN_2(__open_2)
OPEN_2(__open64_2)
OPENAT_2(__openat_2)
OPENAT_2(__openat64_2)
CREAT(creat)
CREAT(creat64)

#define MKSTEMP(name)                                                     \
  PARIO_WRAP(int, name, char* pattern) {                                  \
    return trace_unnamed_open(Symbol::name, kTemporaryFlags,              \
                              [&] { return PARIO_REAL(name)(pattern); }); \
  }
#define MKSTEMP_1(name, flags)                                                    \
  PARIO_WRAP(int, name, char* pattern, int number) {                              \
    return trace_unnamed_open(Symbol::name, kTemporaryFlags | (flags),            \
                              [&] { return PARIO_REAL(name)(pattern, number); }); \
  }
#define MKOSTEMPS(name)                                                                  \
  PARIO_WRAP(int, name, char* pattern, int suffix, int flags) {                          \
    return trace_unnamed_open(Symbol::name, kTemporaryFlags | flags,                     \
                              [&] { return PARIO_REAL(name)(pattern, suffix, flags); }); \
  }

MKSTEMP(mkstemp)
MKSTEMP(mkstemp64)
MKSTEMP_1(mkostemp, number)
MKSTEMP_1(mkostemp64, number)
MKSTEMP_1(mkstemps, 0)
MKSTEMP_1(mkstemps64, 0)
MKOSTEMPS(mkostemps)
MKOSTEMPS(mkostemps64)

PARIO_WRAP(int, memfd_create, const char* name, unsigned flags) {
  return trace_unnamed_open(Symbol::memfd_create, O_RDWR,
                            [&] { return PARIO_REAL(memfd_create)(name, flags); });
}

PARIO_WRAP(int, shm_open, const char* name, int flags, mode_t mode) {
  return trace_unnamed_open(Symbol::shm_open, flags,
                            [&] { return PARIO_REAL(shm_open)(name, flags, mode); });
}
