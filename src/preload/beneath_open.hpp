// How descriptors of buffered files come and go.
#pragma once

#include <fcntl.h>
#include <linux/close_range.h>

#include <algorithm>

#include "preload/beneath.hpp"
#include "preload/control.hpp"

namespace pario::preload::beneath {

/// A file that is cut when it is opened must have nothing to be written later.
inline void before_open(int directory, const char* path, int flags) {
  if ((flags & O_TRUNC) != 0) settle(directory, path);
}

/// `descriptor` has just been opened: it is buffered if its name says so.
/// `since`: ticks, when it began to be opened.
void after_open(int directory, const char* path, int flags, int descriptor, std::uint64_t since);

template <Symbol, class>
struct Opening;
template <Symbol symbol, class... Mode>
struct Opening<symbol, int(const char*, int, Mode...)> {
  static int call(const char* path, int flags, Mode... mode) {
    const std::uint64_t start = trace::ticks();
    before_open(AT_FDCWD, path, flags);
    const int descriptor = next<symbol, int>(path, flags, mode...);
    after_open(AT_FDCWD, path, flags, descriptor, start);
    return descriptor;
  }
};
template <Symbol symbol, class... Mode>
struct Opening<symbol, int(int, const char*, int, Mode...)> {
  static int call(int directory, const char* path, int flags, Mode... mode) {
    const std::uint64_t start = trace::ticks();
    before_open(directory, path, flags);
    const int descriptor = next<symbol, int>(directory, path, flags, mode...);
    after_open(directory, path, flags, descriptor, start);
    return descriptor;
  }
};

template <Symbol, class>
struct Creating;
template <Symbol symbol>
struct Creating<symbol, int(const char*, mode_t)> {
  static int call(const char* path, mode_t mode) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
    const std::uint64_t start = trace::ticks();
    before_open(AT_FDCWD, path, kFlags);
    const int descriptor = next<symbol, int>(path, mode);
    after_open(AT_FDCWD, path, kFlags, descriptor, start);
    return descriptor;
  }
};

/// The descriptor is closed whatever became of its bytes.
template <Symbol, class>
struct Closing;
template <Symbol symbol>
struct Closing<symbol, int(int)> {
  static int call(int descriptor) {
    const int lost = leave_descriptor(descriptor);
    const int result = next<symbol, int>(descriptor);
    return lost == 0 ? result : static_cast<int>(answer(-lost));
  }
};

void leave_range(unsigned first, unsigned last);

template <Symbol, class>
struct ClosingAll;
template <Symbol symbol>
struct ClosingAll<symbol, int(unsigned, unsigned, int)> {
  static int call(unsigned first, unsigned last, int flags) {
    if ((flags & static_cast<int>(CLOSE_RANGE_CLOEXEC)) == 0) leave_range(first, last);
    return next<symbol, int>(first, last, flags);
  }
};
template <Symbol symbol>
struct ClosingAll<symbol, void(int)> {
  static void call(int first) {
    leave_range(static_cast<unsigned>(std::max(first, 0)), ~0u);
    next<symbol, void>(first);
  }
};

template <Symbol, class>
struct Copying;
template <Symbol symbol>
struct Copying<symbol, int(int)> {
  static int call(int original) {
    leave_in_vfork_child(original);
    const int copy = next<symbol, int>(original);
    share(original, copy);
    return copy;
  }
};
template <Symbol symbol, class... Flags>
struct Copying<symbol, int(int, int, Flags...)> {
  static int call(int original, int copy, Flags... flags) {
    leave_in_vfork_child(original);
    if (original != copy && base::system_call(SYS_fcntl, original, F_GETFD) >= 0) leave_descriptor(copy);
    const int result = next<symbol, int>(original, copy, flags...);
    share(original, result);
    return result;
  }
};

/// Locks say that others work on the file; flags may be those that buffers cannot keep.
bool needs_the_kernel(int command);

template <Symbol, class>
struct Control;
template <Symbol symbol>
struct Control<symbol, int(int, int, long)> {
  static int call(int descriptor, int command, long argument) {
    stream::Handle* handle = handle_of(descriptor);
    if (kind_of(command) == FcntlKind::copy) leave_in_vfork_child(descriptor);
    if (handle != nullptr && needs_the_kernel(command))
      stream::leave(*handle, kind_of(command) == FcntlKind::lock ? Reason::locks : Reason::flags);
    const int result = next<symbol, int>(descriptor, command, argument);
    if (kind_of(command) == FcntlKind::copy) share(descriptor, result);
    return result;
  }
};

}  // namespace pario::preload::beneath
