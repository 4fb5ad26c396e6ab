// Wrappers of calls that read directories. They are counted on the directory of the descriptor.
#include <dirent.h>
#include <fcntl.h>

#include "observe/preload/calls.hpp"

using namespace pario::preload;

namespace {

Description* description_of(DIR* directory) {
  return active() && directory != nullptr ? descriptors::find(dirfd(directory)) : nullptr;
}

void count_opendir(const char* name, Span span, DIR* directory) {
  count_path(Symbol::opendir, AT_FDCWD, name, span, directory == nullptr);
  if (directory != nullptr) descriptors::forget(dirfd(directory));  // classified at the first read
}

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

// The end of a directory is no error.
#define READDIR(name)                                                           \
  PARIO_WRAP(void*, name, DIR* directory) {                                     \
    Description* file = description_of(directory);                              \
    if (file == nullptr) return PARIO_REAL(name)(directory);                    \
    return count_call(                                                          \
        start_on(Symbol::name, *file, pario::trace::Layer::posix),              \
        [&] { return PARIO_REAL(name)(directory); },                            \
        [&](Span span, void*) { count_on(Symbol::name, *file, span, false); }); \
  }
READDIR(readdir)
READDIR(readdir64)

PARIO_WRAP(int, closedir, DIR* directory) {
  if (active() && directory != nullptr) descriptors::forget(dirfd(directory));
  return trace_alone(Symbol::closedir, [&] { return PARIO_REAL(closedir)(directory); });
}
