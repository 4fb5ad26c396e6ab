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
void register_descriptor(int descriptor, int flags, std::string_view path, std::uint64_t start);
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
struct OpenFile {
  static int call(auto next, int directory, const char* path, int flags, auto... mode) {
    return open_buffered(directory, path, flags,
                         [&] { return next(directory, path, flags, mode...); });
  }
};
template <Symbol symbol, class Function>
using Open = chain::OnPath<chain::LayerId::buffering, symbol, OpenFile, Function>;

template <Symbol, class>
struct Create;
template <Symbol symbol>
struct Create<symbol, int(const char*, mode_t)> {
  static int call(const char* path, mode_t mode) {
    return open_buffered(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC,
                         [&] { return next<symbol, int>(path, mode); });
  }
};

/// close: closes the descriptor even if bytes were lost.
template <Symbol, class>
struct Close;
template <Symbol symbol>
struct Close<symbol, int(int)> {
  static int call(int descriptor) {
    const int error = close_descriptor(descriptor);
    const int result = next<symbol, int>(descriptor);
    return error == 0 ? result : static_cast<int>(set_errno(-error));
  }
};

/// close_range and closefrom.
template <Symbol, class>
struct CloseRange;
template <Symbol symbol>
struct CloseRange<symbol, int(unsigned, unsigned, int)> {
  static int call(unsigned first, unsigned last, int flags) {
    if ((flags & static_cast<int>(CLOSE_RANGE_CLOEXEC)) == 0) close_descriptors(first, last);
    return next<symbol, int>(first, last, flags);
  }
};
template <Symbol symbol>
struct CloseRange<symbol, void(int)> {
  static void call(int first) {
    close_descriptors(static_cast<unsigned>(std::max(first, 0)), ~0u);
    next<symbol, void>(first);
  }
};

/// dup, dup2 and dup3.
template <Symbol, class>
struct Duplicate;
template <Symbol symbol>
struct Duplicate<symbol, int(int)> {
  static int call(int original) {
    stop_buffering_in_vfork_child(original);
    const int copy = next<symbol, int>(original);
    share_handle(original, copy);
    return copy;
  }
};
template <Symbol symbol, class... Flags>
struct Duplicate<symbol, int(int, int, Flags...)> {
  static int call(int original, int copy, Flags... flags) {
    stop_buffering_in_vfork_child(original);
    if (original != copy && base::system_call(SYS_fcntl, original, F_GETFD) >= 0)
      close_descriptor(copy);
    const int result = next<symbol, int>(original, copy, flags...);
    share_handle(original, result);
    return result;
  }
};

/// True for commands of fcntl that end buffering: locks show that other processes use the file, and
/// buffers cannot keep all flags.
bool ends_buffering(int command);

template <Symbol, class>
struct Control;
template <Symbol symbol>
struct Control<symbol, int(int, int, long)> {
  static int call(int descriptor, int command, long argument) {
    using chain::FcntlKind;
    const FcntlKind kind = chain::kind_of(command);
    buffers::Handle* handle = handle_of(descriptor);
    if (kind == FcntlKind::duplicate) stop_buffering_in_vfork_child(descriptor);
    if (handle != nullptr && ends_buffering(command))
      buffers::stop_buffering(*handle, kind == FcntlKind::lock ? Reason::locks : Reason::flags);
    const int result = next<symbol, int>(descriptor, command, argument);
    if (kind == FcntlKind::duplicate) share_handle(descriptor, result);
    return result;
  }
};

}  // namespace pario::buffering
