// Wrappers of calls that read directories. They are counted on the directory of the descriptor.
#include <dirent.h>
#include <fcntl.h>

#include "observe/preload/calls.hpp"

using namespace pario::preload;
namespace trace = pario::trace;

namespace {

Description* description_of(DIR* directory) {
  return active() && directory != nullptr ? descriptors::find(dirfd(directory)) : nullptr;
}

void count_opendir(const char* name, Span span, DIR* directory) {
  count_path(Symbol::opendir, AT_FDCWD, name, span, directory == nullptr);
  if (directory != nullptr) descriptors::forget(dirfd(directory));  // classified at the first read
}

/// Counts a call that returns all entries of a directory: the call, and its entries.
void count_scan(Symbol symbol, int directory, const char* name, Span span, int entries) {
  count_path(symbol, directory, name, span, entries < 0);
  if (entries < 0 || name == nullptr) return;
  count_row(Symbol::scandir_entries, record_of(trace::Layer::posix, directory, name, -1),
            {span.end, span.end}, false, trace::kUnknownOffset,
            static_cast<std::uint64_t>(entries));
}

template <class Real>
int trace_scan(Symbol symbol, int directory, const char* name, Real real) {
  if (!active()) return real();
  return count_call(start_on_path(symbol, name), real, [&](Span span, int entries) {
    count_scan(symbol, directory, name, span, entries);
  });
}

using Filter = int (*)(const dirent*);
using Comparison = int (*)(const dirent**, const dirent**);

}  // namespace

PARIO_WRAP(DIR*, opendir, const char* name) {
  if (!active()) return PARIO_REAL(opendir)(name);
  return count_call(
      start_on_path(Symbol::opendir, name), [&] { return PARIO_REAL(opendir)(name); },
      [&](Span span, DIR* directory) { count_opendir(name, span, directory); });
}

PARIO_WRAP(DIR*, fdopendir, int fd) {
  return trace_on_descriptor(Symbol::fdopendir, fd, [&] { return PARIO_REAL(fdopendir)(fd); });
}

// The end of a directory is no error, and no entry.
#define READDIR(name)                                                                          \
  PARIO_WRAP(void*, name, DIR* directory) {                                                    \
    Description* file = description_of(directory);                                             \
    if (file == nullptr) return PARIO_REAL(name)(directory);                                   \
    return count_call(                                                                         \
        start_on(Symbol::name, *file, trace::Layer::posix),                                    \
        [&] { return PARIO_REAL(name)(directory); },                                           \
        [&](Span span, void* entry) {                                                          \
          count_on(Symbol::name, *file, span, false, trace::kUnknownOffset, entry != nullptr); \
        });                                                                                    \
  }
READDIR(readdir)
READDIR(readdir64)

// The next readdir reads the directory from its beginning: another listing.
PARIO_WRAP(void, rewinddir, DIR* directory) {
  Description* file = description_of(directory);
  if (file == nullptr) return PARIO_REAL(rewinddir)(directory);
  count_call(
      start_on(Symbol::rewinddir, *file, trace::Layer::posix),
      [&] { return PARIO_REAL(rewinddir)(directory), 0; },
      [&](Span span, int) { count_on(Symbol::rewinddir, *file, span, false); });
}

// The C library's scandir reads the directory by functions of its own.
#define SCANDIR(name)                                                                          \
  PARIO_WRAP(int, name, const char* path, dirent*** list, Filter filter, Comparison compare) { \
    return trace_scan(Symbol::name, AT_FDCWD, path,                                            \
                      [&] { return PARIO_REAL(name)(path, list, filter, compare); });          \
  }
#define SCANDIRAT(name)                                                                          \
  PARIO_WRAP(int, name, int directory, const char* path, dirent*** list, Filter filter,          \
             Comparison compare) {                                                               \
    return trace_scan(Symbol::name, directory, path,                                             \
                      [&] { return PARIO_REAL(name)(directory, path, list, filter, compare); }); \
  }
SCANDIR(scandir)
SCANDIR(scandir64)
SCANDIRAT(scandirat)
SCANDIRAT(scandirat64)

PARIO_WRAP(ssize_t, getdents64, int fd, void* buffer, size_t size) {
  return trace_on_descriptor(Symbol::getdents64, fd,
                             [&] { return PARIO_REAL(getdents64)(fd, buffer, size); });
}

PARIO_WRAP(int, closedir, DIR* directory) {
  if (active() && directory != nullptr) descriptors::forget(dirfd(directory));
  return trace_alone(Symbol::closedir, [&] { return PARIO_REAL(closedir)(directory); });
}
