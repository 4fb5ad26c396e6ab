// Wrappers of calls on names and attributes of files.
#include <fcntl.h>
#include <sys/stat.h>

#include "core/base/base.hpp"
#include "observe/preload/calls.hpp"

using namespace pario::preload;
namespace base = pario::base;

// One line per symbol: result, name, directory and path of the file, parameters, arguments.
#define ON_PATH(result, name, directory, path, parameters, arguments) \
  PARIO_WRAP(result, name, PARIO_LIST parameters) {                   \
    return trace_on_path(Symbol::name, directory, path,               \
                         [&] { return PARIO_REAL(name) arguments; }); \
  }
#define ON_DESCRIPTOR(name, fd, parameters, arguments) \
  RESULT_ON_DESCRIPTOR(int, name, fd, parameters, arguments)
#define RESULT_ON_DESCRIPTOR(result, name, fd, parameters, arguments)                         \
  PARIO_WRAP(result, name, PARIO_LIST parameters) {                                           \
    return trace_on_descriptor(Symbol::name, fd, [&] { return PARIO_REAL(name) arguments; }); \
  }
#define PARIO_LIST(...) __VA_ARGS__

#define STAT(name) \
  ON_PATH(int, name, AT_FDCWD, path, (const char* path, void* status), (path, status))
STAT(stat)
STAT(stat64)
STAT(lstat)
STAT(lstat64)
STAT(statfs)
STAT(statfs64)
STAT(statvfs)
STAT(statvfs64)

#define XSTAT(name)                                                                 \
  ON_PATH(int, name, AT_FDCWD, path, (int version, const char* path, void* status), \
          (version, path, status))
XSTAT(__xstat)
XSTAT(__xstat64)
XSTAT(__lxstat)
XSTAT(__lxstat64)

#define FSTAT(name) ON_DESCRIPTOR(name, fd, (int fd, void* status), (fd, status))
FSTAT(fstat)
FSTAT(fstat64)
FSTAT(fstatfs)
FSTAT(fstatfs64)
FSTAT(fstatvfs)
FSTAT(fstatvfs64)

#define FXSTAT(name) \
  ON_DESCRIPTOR(name, fd, (int version, int fd, void* status), (version, fd, status))
FXSTAT(__fxstat)
FXSTAT(__fxstat64)

/// Traces a call on a descriptor if the name is empty (AT_EMPTY_PATH), otherwise on the name.
template <class Real>
static auto trace_on_either(Symbol symbol, int directory, const char* path, int flags, Real real) {
  if ((flags & AT_EMPTY_PATH) != 0 && directory >= 0 && (path == nullptr || *path == '\0'))
    return trace_on_descriptor(symbol, directory, real);
  return trace_on_path(symbol, directory, path, real);
}

#define ON_EITHER(name, parameters, arguments)                          \
  PARIO_WRAP(int, name, PARIO_LIST parameters) {                        \
    return trace_on_either(Symbol::name, directory, path, flags,        \
                           [&] { return PARIO_REAL(name) arguments; }); \
  }

#define FSTATAT(name)                                                         \
  ON_EITHER(name, (int directory, const char* path, void* status, int flags), \
            (directory, path, status, flags))
FSTATAT(fstatat)
FSTATAT(fstatat64)

#define FXSTATAT(name)                                                                     \
  ON_EITHER(name, (int version, int directory, const char* path, void* status, int flags), \
            (version, directory, path, status, flags))
FXSTATAT(__fxstatat)
FXSTATAT(__fxstatat64)

ON_EITHER(statx, (int directory, const char* path, int flags, unsigned mask, void* status),
          (directory, path, flags, mask, status))

#define ACCESS(name) ON_PATH(int, name, AT_FDCWD, path, (const char* path, int mode), (path, mode))
ACCESS(access)
ACCESS(eaccess)
ACCESS(euidaccess)
ON_EITHER(faccessat, (int directory, const char* path, int mode, int flags),
          (directory, path, mode, flags))

ON_PATH(ssize_t, readlink, AT_FDCWD, path, (const char* path, char* target, size_t size),
        (path, target, size))
ON_PATH(ssize_t, readlinkat, directory, path,
        (int directory, const char* path, char* target, size_t size),
        (directory, path, target, size))

// The C library reads the links of the path by functions of its own.
ON_PATH(char*, realpath, AT_FDCWD, path, (const char* path, char* target), (path, target))
ON_PATH(char*, __realpath_chk, AT_FDCWD, path, (const char* path, char* target, size_t size),
        (path, target, size))
ON_PATH(char*, canonicalize_file_name, AT_FDCWD, path, (const char* path), (path))

#define TRUNCATE(name) \
  ON_PATH(int, name, AT_FDCWD, path, (const char* path, off_t size), (path, size))
TRUNCATE(truncate)
TRUNCATE(truncate64)

// Calls with two names are counted on the first, the file moved or linked; symlink on the second,
// because the first need not exist.
ON_PATH(int, rename, AT_FDCWD, path, (const char* path, const char* target), (path, target))
ON_PATH(int, renameat, directory, path,
        (int directory, const char* path, int other, const char* target),
        (directory, path, other, target))
ON_PATH(int, renameat2, directory, path,
        (int directory, const char* path, int other, const char* target, unsigned flags),
        (directory, path, other, target, flags))
ON_PATH(int, link, AT_FDCWD, path, (const char* path, const char* target), (path, target))
ON_PATH(int, linkat, directory, path,
        (int directory, const char* path, int other, const char* target, int flags),
        (directory, path, other, target, flags))
ON_PATH(int, symlink, AT_FDCWD, path, (const char* target, const char* path), (target, path))
ON_PATH(int, symlinkat, directory, path, (const char* target, int directory, const char* path),
        (target, directory, path))

#define NAME_ONLY(name) ON_PATH(int, name, AT_FDCWD, path, (const char* path), (path))
NAME_ONLY(unlink)
NAME_ONLY(remove)
NAME_ONLY(rmdir)
ON_PATH(int, unlinkat, directory, path, (int directory, const char* path, int flags),
        (directory, path, flags))

ON_PATH(int, mkdir, AT_FDCWD, path, (const char* path, mode_t mode), (path, mode))
ON_PATH(int, mkdirat, directory, path, (int directory, const char* path, mode_t mode),
        (directory, path, mode))
ON_PATH(int, chmod, AT_FDCWD, path, (const char* path, mode_t mode), (path, mode))
ON_PATH(int, fchmodat, directory, path, (int directory, const char* path, mode_t mode, int flags),
        (directory, path, mode, flags))
ON_DESCRIPTOR(fchmod, fd, (int fd, mode_t mode), (fd, mode))

#define CHOWN(name)                                                               \
  ON_PATH(int, name, AT_FDCWD, path, (const char* path, uid_t user, gid_t group), \
          (path, user, group))
CHOWN(chown)
CHOWN(lchown)
ON_EITHER(fchownat, (int directory, const char* path, uid_t user, gid_t group, int flags),
          (directory, path, user, group, flags))
ON_DESCRIPTOR(fchown, fd, (int fd, uid_t user, gid_t group), (fd, user, group))

#define SETXATTR(name)                                                                          \
  ON_PATH(int, name, AT_FDCWD, path,                                                            \
          (const char* path, const char* attribute, const void* value, size_t size, int flags), \
          (path, attribute, value, size, flags))
SETXATTR(setxattr)
SETXATTR(lsetxattr)
ON_DESCRIPTOR(fsetxattr, fd,
              (int fd, const char* attribute, const void* value, size_t size, int flags),
              (fd, attribute, value, size, flags))

#define REMOVEXATTR(name) \
  ON_PATH(int, name, AT_FDCWD, path, (const char* path, const char* attribute), (path, attribute))
REMOVEXATTR(removexattr)
REMOVEXATTR(lremovexattr)
ON_DESCRIPTOR(fremovexattr, fd, (int fd, const char* attribute), (fd, attribute))

#define GETXATTR(name)                                                         \
  ON_PATH(ssize_t, name, AT_FDCWD, path,                                       \
          (const char* path, const char* attribute, void* value, size_t size), \
          (path, attribute, value, size))
GETXATTR(getxattr)
GETXATTR(lgetxattr)
#define LISTXATTR(name)                                                               \
  ON_PATH(ssize_t, name, AT_FDCWD, path, (const char* path, char* list, size_t size), \
          (path, list, size))
LISTXATTR(listxattr)
LISTXATTR(llistxattr)
RESULT_ON_DESCRIPTOR(ssize_t, fgetxattr, fd,
                     (int fd, const char* attribute, void* value, size_t size),
                     (fd, attribute, value, size))
RESULT_ON_DESCRIPTOR(ssize_t, flistxattr, fd, (int fd, char* list, size_t size), (fd, list, size))

ON_PATH(int, utimensat, directory, path,
        (int directory, const char* path, const timespec* times, int flags),
        (directory, path, times, flags))
ON_DESCRIPTOR(futimens, fd, (int fd, const timespec* times), (fd, times))

#define UTIMES(name) \
  ON_PATH(int, name, AT_FDCWD, path, (const char* path, const void* times), (path, times))
UTIMES(utime)
UTIMES(utimes)
UTIMES(lutimes)
ON_DESCRIPTOR(futimes, fd, (int fd, const void* times), (fd, times))

// chdir and fchdir are not counted on a file, because names are resolved after the call, and a
// relative name would then refer to the new directory.
template <class Real>
static int trace_directory_change(Symbol symbol, Real real) {
  const int result = trace_alone(symbol, real);
  base::current_directory::forget();
  return result;
}

PARIO_WRAP(int, chdir, const char* path) {
  return trace_directory_change(Symbol::chdir, [&] { return PARIO_REAL(chdir)(path); });
}
PARIO_WRAP(int, fchdir, int fd) {
  return trace_directory_change(Symbol::fchdir, [&] { return PARIO_REAL(fchdir)(fd); });
}
