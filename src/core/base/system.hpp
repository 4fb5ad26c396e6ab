// System calls that bypass interposed wrappers of libc and preserve errno.
#pragma once

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace pario::base {

/// Makes a system call of six words; returns its result, or -errno. By the instruction, because
/// module preload interposes the C library's syscall().
inline long call_kernel(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
#if defined(__x86_64__)
  long result;
  register long fourth __asm__("r10") = d;
  register long fifth __asm__("r8") = e;
  register long sixth __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long kind __asm__("x8") = number;
  register long first __asm__("x0") = a;
  register long second __asm__("x1") = b;
  register long third __asm__("x2") = c;
  register long fourth __asm__("x3") = d;
  register long fifth __asm__("x4") = e;
  register long sixth __asm__("x5") = f;
  __asm__ volatile("svc #0"
                   : "+r"(first)
                   : "r"(kind), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "memory");
  return first;
#else
  const int saved = errno;
  const long result = ::syscall(number, a, b, c, d, e, f);
  const long error = errno;
  errno = saved;
  return result == -1 ? -error : result;
#endif
}

/// An argument of a system call as a machine word.
template <class Argument>
long word_of(Argument argument) {
  if constexpr (std::is_null_pointer_v<Argument>)
    return 0;
  else if constexpr (std::is_pointer_v<Argument>)
    return reinterpret_cast<long>(argument);
  else
    return static_cast<long>(argument);
}

/// Makes a system call; returns its result, or -errno.
template <class... Args>
long system_call(long number, Args... args) {
  return call_kernel(number, word_of(args)...);
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
/// Reads the status of a path relative to a directory; `flags`: AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW.
int status_of(int directory, const char* path, int flags, struct stat& status);
/// The same by statx(2), which may leave some of the facts of `mask` (STATX_TYPE, ...) out.
int extended_status_of(int directory, const char* path, int flags, unsigned mask,
                       struct statx& status);
/// Sets a lock of one byte of a file (F_RDLCK, F_WRLCK) or removes it (F_UNLCK). It belongs to the
/// open description: all processes that share it have the lock, and the kernel removes it with the
/// last one. `waits`: for locks of others, also across interruptions.
long lock_byte(int descriptor, short type, std::uint64_t byte, bool waits);
/// Reads the target of a symbolic link, terminated by zero; returns its length.
long read_link(const char* path, char* out, std::size_t size);
/// Reads entries (struct dirent64) of an open directory into `out`; returns their bytes, 0 at the
/// end.
long read_entries(int directory, void* out, std::size_t size);
/// Reads the path of the working directory, terminated by zero; returns its length, which is not
/// positive if it has no path any more.
long read_working_directory(char* out, std::size_t size);

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
/// them, too, and files that consist of subfiles are opened as they are.
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
