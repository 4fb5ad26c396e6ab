// The table from descriptors to handles of module buffers, and the treatments of the calls that
// open, close and duplicate descriptors.
#pragma once

#include <fcntl.h>
#include <linux/close_range.h>

#include <algorithm>

#include "layers/buffering/buffering.hpp"
#include "layers/chain/fcntl_command.hpp"

namespace pario::buffering {

// ---- the table

/// Buffers a descriptor that has just been opened, if a setting asks for it. `start`: ticks at the
/// beginning of the open call.
/// False: the descriptor is not buffered.
bool register_descriptor(int descriptor, int flags, std::string_view path, std::uint64_t start);
/// Notes that the program uses the file of a descriptor without buffers: the file is not buffered
/// while it does, and a use of its buffers ends now.
void note_unbuffered(int descriptor);
/// Makes `copy` a descriptor of the handle of `original`.
void share_handle(int original, int copy);
/// Before a descriptor is closed. Returns the errno of lost bytes, or 0.
int close_descriptor(int descriptor);
void close_descriptors(unsigned first, unsigned last);
/// One past the largest descriptor that was ever buffered.
int end_of_descriptors();
/// Reads the offsets of all handles from the kernel, after another program has run with copies.
void reload_offsets();
/// Forgets all descriptors in the child of a fork: no file that was open before is buffered.
void forget_descriptors();
/// In the child of a vfork, which has descriptors of its own in the memory of its parent: stops
/// buffering the file of a descriptor that it uses, or hands on to the program that it executes.
void stop_buffering_in_vfork_child(int descriptor);

// ---- files

/// Writes the dirty bytes of the file of a path; a null path or a missing file is ignored.
void flush_path(int directory, const char* path);
/// Writes the dirty bytes of the file that stat(2) has returned; false: it has no buffers.
bool flush_file(const struct stat& status);
/// Writes the dirty bytes of the file of a path, and stops buffering it.
void stop_buffering(int directory, const char* path, Reason reason);

/// The origin of a file's buffers for the log, in a row of the file in `layer`.
buffers::Origin origin_of(const Setting& setting, trace::Layer layer, std::string_view path,
                          int descriptor);

// ---- treatments

/// Flushes a file before O_TRUNC truncates it: it must have no dirty bytes then.
inline void before_open(int directory, const char* path, int flags) {
  if ((flags & O_TRUNC) != 0) flush_path(directory, path);
}

/// Buffers a descriptor that has just been opened, if a setting asks for it. `start`: ticks at the
/// beginning of the open call.
void after_open(int directory, const char* path, int flags, int descriptor, std::uint64_t start);

/// Calls `open`, and buffers the descriptor if a setting asks for it.
template <class OpenFile>
int open_buffered(int directory, const char* path, int flags, OpenFile open) {
  const std::uint64_t start = trace::ticks();
  before_open(directory, path, flags);
  const int descriptor = open();
  after_open(directory, path, flags, descriptor, start);
  return descriptor;
}

/// open and openat.
struct Open : chain::OnPath {
  static int call(auto next, int directory, const char* path, int flags, auto... mode) {
    return open_buffered(directory, path, flags,
                         [&] { return next(directory, path, flags, mode...); });
  }
};

struct Create {
  static int call(auto next, const char* path, mode_t mode) {
    return open_buffered(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC,
                         [&] { return next(path, mode); });
  }
};

/// close: closes the descriptor even if bytes were lost.
struct Close {
  static int call(auto next, int descriptor) {
    restore_streams_on(descriptor);
    const int error = close_descriptor(descriptor);
    const int result = next(descriptor);
    return error == 0 ? result : static_cast<int>(set_errno(-error));
  }
};

/// close_range and closefrom.
struct CloseRange {
  static int call(auto next, unsigned first, unsigned last, int flags) {
    // Other flags are errors.
    if ((flags & ~static_cast<int>(CLOSE_RANGE_UNSHARE)) == 0) close_descriptors(first, last);
    return next(first, last, flags);
  }
  static void call(auto next, int first) {
    close_descriptors(static_cast<unsigned>(std::max(first, 0)), ~0u);
    next(first);
  }
};

/// dup, dup2 and dup3.
struct Duplicate {
  static int call(auto next, int original) {
    stop_buffering_in_vfork_child(original);
    restore_streams_on(original);
    const int copy = next(original);
    share_handle(original, copy);
    return copy;
  }
  static int call(auto next, int original, int copy, auto... flags) {
    stop_buffering_in_vfork_child(original);
    restore_streams_on(original);
    restore_streams_on(copy);
    if (original != copy && base::system_call(SYS_fcntl, original, F_GETFD) >= 0 &&
        ((flags | ... | 0) & ~O_CLOEXEC) == 0)
      close_descriptor(copy);
    const int result = next(original, copy, flags...);
    share_handle(original, result);
    return result;
  }
};

/// True for commands of fcntl that end buffering: locks show that other processes use the file, and
/// buffers cannot keep all flags.
bool ends_buffering(int command);

/// A call on a lock of any file, by which processes take turns in using others: all files have
/// their bytes before it ends a turn, and show those of other processes after it begins one.
class AroundLock {
 public:
  explicit AroundLock(bool locks) : locks_(locks) {
    if (locks_) synchronize();
  }
  ~AroundLock() {
    if (locks_) synchronize();
  }
  AroundLock(const AroundLock&) = delete;
  AroundLock& operator=(const AroundLock&) = delete;

 private:
  static void synchronize() {
    if (pario_in_vfork_child != 0) return;
    const base::SavedErrno saved;
    write_all_streams();
    if (!buffers::is_idle()) buffers::flush_all();
  }

  bool locks_;
};

struct Control {
  static int call(auto next, int descriptor, int command, long argument) {
    using chain::FcntlKind;
    const FcntlKind kind = chain::kind_of(command);
    buffers::Handle* handle = handle_in_call(descriptor);
    if (kind == FcntlKind::duplicate) {
      stop_buffering_in_vfork_child(descriptor);
      restore_streams_on(descriptor);
    }
    const AroundLock around(kind == FcntlKind::lock || command == F_SETLEASE);
    if (handle != nullptr && ends_buffering(command))
      buffers::stop_buffering(*handle, kind == FcntlKind::lock ? Reason::locks : Reason::flags);
    const int result = next(descriptor, command, argument);
    if (kind == FcntlKind::duplicate) share_handle(descriptor, result);
    return result;
  }
};

}  // namespace pario::buffering
