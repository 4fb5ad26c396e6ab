// Wrappers of calls on descriptors: close, duplicate, seek, synchronise, truncate, lock.
#include <fcntl.h>
#include <linux/close_range.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>

#include "core/base/base.hpp"
#include "layers/chain/fcntl_command.hpp"
#include "observe/preload/calls.hpp"
#include "observe/preload/rings.hpp"
#include "observe/preload/unseen_rings.hpp"

using namespace pario::preload;
namespace chain = pario::chain;
namespace trace = pario::trace;

namespace {

/// True for the descriptor of the log, which the program must not close.
bool is_log_descriptor(int descriptor) {
  return descriptor >= 0 && active() && descriptor == trace::descriptor();
}

/// Traces a call that duplicates a descriptor.
template <class Real>
int trace_duplicate(Symbol symbol, int original, Real real) {
  const int result = trace_on_descriptor(symbol, original, real);
  if (result >= 0 && active()) descriptors::share(original, result);
  return result;
}

void change_flags(int descriptor, int flags) {
  constexpr int kChangeable = O_APPEND | O_DIRECT | O_NONBLOCK | O_NOATIME | O_ASYNC;
  Description* file = active() ? descriptors::find_known(descriptor) : nullptr;
  if (file == nullptr) return;
  const int old = file->open_flags.load(std::memory_order_relaxed);
  file->open_flags.store((old & ~kChangeable) | (flags & kChangeable), std::memory_order_relaxed);
}

template <class Real>
int trace_fcntl(Symbol symbol, int descriptor, int command, long argument, Real real) {
  switch (chain::kind_of(command)) {
    case chain::FcntlKind::duplicate:
      return trace_duplicate(symbol, descriptor, real);
    case chain::FcntlKind::lock:
      return trace_on_descriptor(Symbol::fcntl_lock, descriptor, real);
    case chain::FcntlKind::plain:
      return real();
    case chain::FcntlKind::set_flags:
      break;
  }
  const int result = real();
  if (result >= 0) change_flags(descriptor, static_cast<int>(argument));
  return result;
}

void count_seek(Symbol symbol, Description& file, Span span, off_t reached) {
  const bool shared = file.shared.load(std::memory_order_relaxed);
  const auto position = static_cast<std::uint64_t>(reached);
  const std::uint64_t before =
      reached < 0 ? trace::kUnknownOffset : file.offset.load(std::memory_order_relaxed);
  if (reached >= 0) file.offset.store(position, std::memory_order_relaxed);
  count_on(symbol, file, span, reached < 0, reached < 0 ? trace::kUnknownOffset : position,
           shared ? trace::kUnknownOffset : before);
}

template <class Real>
off_t trace_seek(Symbol symbol, int descriptor, Real real) {
  Description* file = active() ? descriptors::find(descriptor) : nullptr;
  if (file == nullptr) return real();
  return count_call(
      start_on(symbol, *file, trace::Layer::posix), real,
      [&](Span span, off_t reached) { count_seek(symbol, *file, span, reached); },
      [&](off_t) { file->shared.store(true, std::memory_order_relaxed); });
}

}  // namespace

// Forgets the descriptor before the real call and counts afterwards: another thread may open the
// same number as soon as the real call has closed it.
PARIO_WRAP(int, close, int fd) {
  Description* file = active() ? descriptors::find_known(fd) : nullptr;
  if (file == nullptr) {
    if (is_log_descriptor(fd)) {
      errno = EBADF;
      return -1;
    }
    if (active()) {
      in_tracer([&] { rings::end_descriptor(fd); });
      descriptors::forget(fd);
    }
    return PARIO_REAL(close)(fd);
  }
  trace::Record* record =
      file->records[static_cast<int>(trace::Layer::posix)].load(std::memory_order_relaxed);
  if (record == nullptr) in_tracer([&] { record = record_of(*file, trace::Layer::posix); });
  if (record != nullptr && unseen_rings::is_unused(*record)) [[unlikely]]
    in_tracer([] { unseen_rings::look_for_unused_file(); });
  descriptors::forget(fd);
  const trace::CallStart start{
      .function = id_of(Symbol::close),
      .file = record == nullptr ? trace::kNoFile : trace::index_of(record)};
  return count_call(
      start, [&] { return PARIO_REAL(close)(fd); },
      [&](Span span, int result) { count_row(Symbol::close, record, span, is_failure(result)); });
}

PARIO_WRAP(int, close_range, unsigned first, unsigned last, int flags) {
  const auto log = static_cast<unsigned>(active() ? trace::descriptor() : -1);
  if (!active() || (flags & static_cast<int>(CLOSE_RANGE_CLOEXEC)) != 0)
    return PARIO_REAL(close_range)(first, last, flags);
  return trace_alone(Symbol::close_range, [&] {
    if (first <= last) descriptors::forget_range(first, last);
    if (log < first || log > last) return PARIO_REAL(close_range)(first, last, flags);
    const int below = log > first ? PARIO_REAL(close_range)(first, log - 1, flags) : 0;
    return below == 0 && log < last ? PARIO_REAL(close_range)(log + 1, last, flags) : below;
  });
}

PARIO_WRAP(void, closefrom, int first) {
  if (!active()) return PARIO_REAL(closefrom)(first);
  const int log = trace::descriptor();
  first = std::max(first, 0);
  descriptors::forget_range(static_cast<unsigned>(first), UINT_MAX);
  if (log >= first) {
    for (int descriptor = first; descriptor < log; ++descriptor)
      pario::base::close_file(descriptor);
    first = log + 1;
  }
  PARIO_REAL(closefrom)(first);
}

PARIO_WRAP(int, dup, int fd) {
  return trace_duplicate(Symbol::dup, fd, [&] { return PARIO_REAL(dup)(fd); });
}
PARIO_WRAP(int, dup2, int fd, int copy) {
  return trace_duplicate(Symbol::dup2, fd, [&] { return PARIO_REAL(dup2)(fd, copy); });
}
PARIO_WRAP(int, dup3, int fd, int copy, int flags) {
  return trace_duplicate(Symbol::dup3, fd, [&] { return PARIO_REAL(dup3)(fd, copy, flags); });
}

#define FCNTL(name)                                                              \
  PARIO_WRAP(int, name, int fd, int command, ...) {                              \
    va_list arguments;                                                           \
    va_start(arguments, command);                                                \
    const long argument = va_arg(arguments, long);                               \
    va_end(arguments);                                                           \
    return trace_fcntl(Symbol::name, fd, command, argument,                      \
                       [&] { return PARIO_REAL(name)(fd, command, argument); }); \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

#define SEEK(name)                                                                             \
  PARIO_WRAP(off_t, name, int fd, off_t offset, int whence) {                                  \
    return trace_seek(Symbol::name, fd, [&] { return PARIO_REAL(name)(fd, offset, whence); }); \
  }
SEEK(lseek)
SEEK(lseek64)

#define SYNC(name)                                                                      \
  PARIO_WRAP(int, name, int fd) {                                                       \
    return trace_on_descriptor(Symbol::name, fd, [&] { return PARIO_REAL(name)(fd); }); \
  }
SYNC(fsync)
SYNC(fdatasync)
SYNC(syncfs)

PARIO_WRAP(int, sync_file_range, int fd, off_t offset, off_t size, unsigned flags) {
  return trace_on_descriptor(Symbol::sync_file_range, fd,
                             [&] { return PARIO_REAL(sync_file_range)(fd, offset, size, flags); });
}

// Counts on the root directory, because the call waits for all file systems.
PARIO_WRAP(void, sync, void) {
  trace_on_path(Symbol::sync, AT_FDCWD, "/", [] { return PARIO_REAL(sync)(), 0; });
}

#define FTRUNCATE(name)                                               \
  PARIO_WRAP(int, name, int fd, off_t size) {                         \
    return trace_on_descriptor(                                       \
        Symbol::name, fd, [&] { return PARIO_REAL(name)(fd, size); }, \
        static_cast<std::uint64_t>(size));                            \
  }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)

#define FALLOCATE(name)                                                             \
  PARIO_WRAP(int, name, int fd, int mode, off_t offset, off_t size) {               \
    return trace_on_descriptor(                                                     \
        Symbol::name, fd, [&] { return PARIO_REAL(name)(fd, mode, offset, size); }, \
        static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(size));      \
  }
FALLOCATE(fallocate)
FALLOCATE(fallocate64)

// The functions below return an error number, not -1.
#define POSIX_FALLOCATE(name)                                                  \
  PARIO_WRAP(int, name, int fd, off_t offset, off_t size) {                    \
    return -trace_on_descriptor(                                               \
        Symbol::name, fd, [&] { return -PARIO_REAL(name)(fd, offset, size); }, \
        static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(size)); \
  }
POSIX_FALLOCATE(posix_fallocate)
POSIX_FALLOCATE(posix_fallocate64)

#define POSIX_FADVISE(name)                                                                   \
  PARIO_WRAP(int, name, int fd, off_t offset, off_t size, int advice) {                       \
    return -trace_on_descriptor(Symbol::name, fd,                                             \
                                [&] { return -PARIO_REAL(name)(fd, offset, size, advice); }); \
  }
POSIX_FADVISE(posix_fadvise)
POSIX_FADVISE(posix_fadvise64)

PARIO_WRAP(int, flock, int fd, int operation) {
  return trace_on_descriptor(Symbol::flock, fd, [&] { return PARIO_REAL(flock)(fd, operation); });
}

#define LOCKF(name)                                                                  \
  PARIO_WRAP(int, name, int fd, int command, off_t size) {                           \
    return trace_on_descriptor(Symbol::name, fd,                                     \
                               [&] { return PARIO_REAL(name)(fd, command, size); }); \
  }
LOCKF(lockf)
LOCKF(lockf64)

PARIO_WRAP(int, ioctl, int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return trace_on_descriptor(Symbol::ioctl, fd,
                             [&] { return PARIO_REAL(ioctl)(fd, request, argument); });
}
