#include "core/base/system.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>

#include "core/base/extent.hpp"

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace pario::base {

int open_file(const char* path, int flags, unsigned mode) {
  return static_cast<int>(system_call(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode));
}

int close_file(int descriptor) { return static_cast<int>(system_call(SYS_close, descriptor)); }

int move_high(int descriptor) {
  // Above the numbers that programs use, and below common limits.
  constexpr int kPrivateDescriptors = 1000;
  rlimit64 limit{};
  system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit);
  const auto highest = static_cast<int>(std::min<std::uint64_t>(limit.rlim_cur, 1 << 20)) - 8;
  const long moved = system_call(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC,
                                 std::clamp(highest, 3, kPrivateDescriptors));
  if (moved < 0) return descriptor;
  close_file(descriptor);
  return static_cast<int>(moved);
}

long read_all(int descriptor, void* data, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const long got =
        system_call(SYS_read, descriptor, static_cast<char*>(data) + done, size - done);
    if (got == -EINTR) continue;
    if (got < 0) return got;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<long>(done);
}

long read_file(const char* path, void* data, std::size_t size) {
  const int descriptor = open_file(path, O_RDONLY);
  if (descriptor < 0) return descriptor;
  const long got = read_all(descriptor, data, size);
  close_file(descriptor);
  return got;
}

long write_all(int descriptor, const void* data, std::size_t size, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < size) {
    const long put = system_call(SYS_pwrite64, descriptor, static_cast<const char*>(data) + done,
                                 size - done, offset + done);
    if (put == -EINTR) continue;
    if (put < 0) return put;
    if (put == 0) return -ENOSPC;
    done += static_cast<std::size_t>(put);
  }
  return static_cast<long>(done);
}

int status_of(int descriptor, struct stat& status) {
  return static_cast<int>(system_call(SYS_fstat, descriptor, &status));
}

int status_of(const char* path, struct stat& status) {
  return status_of(AT_FDCWD, path, 0, status);
}

int status_of(int directory, const char* path, int flags, struct stat& status) {
  return static_cast<int>(system_call(SYS_newfstatat, directory, path, &status, flags));
}

int extended_status_of(int directory, const char* path, int flags, unsigned mask,
                       struct statx& status) {
  return static_cast<int>(system_call(SYS_statx, directory, path, flags, mask, &status));
}

long lock_byte(int descriptor, short type, std::uint64_t byte, bool waits) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  while (true) {
    const long result =
        system_call(SYS_fcntl, descriptor, waits ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
    if (!waits || result != -EINTR) return result;
  }
}

long read_link(const char* path, char* out, std::size_t size) {
  const long length = system_call(SYS_readlinkat, AT_FDCWD, path, out, size - 1);
  if (length >= 0) out[length] = 0;
  return length;
}

long read_entries(int directory, void* out, std::size_t size) {
  return system_call(SYS_getdents64, directory, out, size);
}

long read_working_directory(char* out, std::size_t size) {
  const long length = system_call(SYS_getcwd, out, size);  // counts the terminating zero
  if (length <= 0) return length;
  return out[0] == '/' ? length - 1 : 0;
}

namespace {

/// Reports system calls to the thread sanitizer, which does not see them: one thread unmapped pages
/// before another mapped them.
#ifdef __SANITIZE_THREAD__
char pages;
void note_unmapping() { __tsan_release(&pages); }
void note_mapping() { __tsan_acquire(&pages); }
#else
void note_unmapping() {}
void note_mapping() {}
#endif

std::byte* map(std::size_t size, int flags, int descriptor, std::uint64_t offset) {
  const long address =
      system_call(SYS_mmap, nullptr, size, PROT_READ | PROT_WRITE, flags, descriptor, offset);
  note_mapping();
  if (address < 0 && address > -4096) return nullptr;
  auto* const memory = reinterpret_cast<std::byte*>(address);
  leave_out_of_core_dumps(memory, size);
  return memory;
}

}  // namespace

void leave_out_of_core_dumps(const std::byte* begin, std::size_t size) {
  const auto page = static_cast<std::uint64_t>(::getpagesize());
  const auto at = reinterpret_cast<std::uint64_t>(begin);
  const std::uint64_t first = round_up(at, page), last = round_down(at + size, page);
  if (first < last) system_call(SYS_madvise, first, last - first, MADV_DONTDUMP);
}

std::byte* map_memory(std::size_t size) { return map(size, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

std::byte* map_shared(int descriptor, std::uint64_t offset, std::size_t size) {
  return map(size, MAP_SHARED, descriptor, offset);
}

std::byte* remap(std::byte* memory, std::size_t size, std::size_t larger) {
  note_unmapping();  // the kernel may move the pages
  const long address = system_call(SYS_mremap, memory, size, larger, MREMAP_MAYMOVE);
  note_mapping();
  if (address < 0 && address > -4096) return nullptr;
  auto* const moved = reinterpret_cast<std::byte*>(address);
  leave_out_of_core_dumps(moved, larger);
  return moved;
}

void unmap(void* address, std::size_t size) {
  note_unmapping();
  system_call(SYS_munmap, address, size);
}

void say(std::span<const char> text) { system_call(SYS_write, 2, text.data(), text.size()); }

constinit thread_local int Unbuffered::depth_ = 0;

}  // namespace pario::base
