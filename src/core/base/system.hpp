// System calls that bypass interposed wrappers of libc and preserve errno.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pario::base {

/// Makes a system call; returns its result, or -errno.
template <class... Args>
long system_call(long number, Args... args) {
  const int saved = errno;
  const long result = ::syscall(number, args...);
  const long error = errno;
  errno = saved;
  return result == -1 ? -error : result;
}

// All functions return -errno on failure.
int open_file(const char* path, int flags, unsigned mode = 0);
int close_file(int descriptor);
/// Moves one of pario's descriptors to a high number that programs do not use, if one is free;
/// returns the new number.
int move_high(int descriptor);
/// Reads `size` bytes, or up to the end of the file.
long read_all(int descriptor, void* data, std::size_t size);
/// Reads the start of a file, at most `size` bytes.
long read_file(const char* path, void* data, std::size_t size);
/// Writes all bytes, across interruptions and partial writes.
long write_all(int descriptor, const void* data, std::size_t size, std::uint64_t offset);
int status_of(int descriptor, struct stat& status);
int status_of(const char* path, struct stat& status);
/// Reads the target of a symbolic link, terminated by zero; returns its length.
long read_link(const char* path, char* out, std::size_t size);

/// Leaves the whole pages of a range out of core dumps, if the kernel can.
void leave_out_of_core_dumps(const std::byte* begin, std::size_t size);
/// Maps pages for pario's own use, zeroed and left out of core dumps; null on failure.
std::byte* map_memory(std::size_t size);
/// Maps a range of a file, shared and left out of core dumps; null on failure.
std::byte* map_shared(int descriptor, std::uint64_t offset, std::size_t size);
/// Enlarges pages of map_memory(), which may move; null on failure, the pages are as they were
/// then.
std::byte* remap(std::byte* memory, std::size_t size, std::size_t larger);
void unmap(void* address, std::size_t size);

/// Writes text to stderr, without buffers.
void say(std::span<const char> text);

/// Restores the errno of the calling thread at its end.
class SavedErrno {
 public:
  SavedErrno() : saved_(errno) {}
  ~SavedErrno() { errno = saved_; }
  SavedErrno(const SavedErrno&) = delete;
  SavedErrno& operator=(const SavedErrno&) = delete;

 private:
  int saved_;
};

/// While one exists, files that the thread opens are not buffered, because other processes use
/// them, too.
class Unbuffered {
 public:
  Unbuffered() { ++depth_; }
  ~Unbuffered() { --depth_; }
  Unbuffered(const Unbuffered&) = delete;
  Unbuffered& operator=(const Unbuffered&) = delete;
  static bool active() { return depth_ != 0; }

 private:
  static thread_local int depth_;
};

}  // namespace pario::base
