// System calls that reach the kernel whoever interposes libc's wrappers, and that leave errno alone.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pario::base {

/// A system call; the result, or -errno.
template <class... Args>
long system_call(long number, Args... args) {
  const int saved = errno;
  const long result = ::syscall(number, args...);
  const long error = errno;
  errno = saved;
  return result == -1 ? -error : result;
}

// All return -errno on failure.
int open_file(const char* path, int flags, unsigned mode = 0);
int close_file(int descriptor);
/// Moves a descriptor of pario's own out of the program's way, where there is room; its number then.
int move_high(int descriptor);
/// Reads until `size` bytes or the end of the file.
long read_all(int descriptor, void* data, std::size_t size);
/// The start of a file, at most `size` bytes.
long read_file(const char* path, void* data, std::size_t size);
/// Writes all of it, over interruptions and partial writes.
long write_all(int descriptor, const void* data, std::size_t size, std::uint64_t offset);
int status_of(int descriptor, struct stat& status);
int status_of(const char* path, struct stat& status);
/// The target of a symbolic link, terminated by zero; its length.
long read_link(const char* path, char* out, std::size_t size);

/// Keeps the whole pages within a range out of core dumps, where the kernel can do that.
void leave_out_of_core_dumps(const std::byte* begin, std::size_t size);
/// Pages of memory for pario's own use, zeroed and left out of core dumps; null when there are none.
std::byte* map_memory(std::size_t size);
/// A range of a file, shared with it and left out of core dumps; null when that fails.
std::byte* map_shared(int descriptor, std::uint64_t offset, std::size_t size);
void unmap(void* address, std::size_t size);

/// Text to stderr, past every buffer.
void say(std::span<const char> text);

/// The calling thread's errno is as before when this ends.
class SavedErrno {
 public:
  SavedErrno() : saved_(errno) {}
  ~SavedErrno() { errno = saved_; }
  SavedErrno(const SavedErrno&) = delete;
  SavedErrno& operator=(const SavedErrno&) = delete;

 private:
  int saved_;
};

/// While one lives, files that the thread opens are not to be buffered: other processes work on them, too.
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
