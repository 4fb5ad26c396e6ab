// The system calls beneath the buffers, and the identity of files.
#pragma once

#include <sys/stat.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "core/layout/layout.hpp"

namespace pario::buffers {

/// A table of system calls; each returns a result or -errno. Tests replace entries before the first
/// file is opened.
///
/// It is not the file interface of core/file: the calls come from signal handlers, before
/// constructors and in the child of a fork, and therefore use neither heap nor error texts; and
/// they are direct system calls, so that no tracer (pario's included) sees them.
struct SystemCalls {
  long (*pwritev)(int descriptor, const iovec* pieces, int count, std::uint64_t offset);
  long (*write)(int descriptor, const void* data, std::size_t size);
  long (*preadv)(int descriptor, const iovec* pieces, int count, std::uint64_t offset);
  long (*seek)(int descriptor, std::int64_t offset, int whence);
  int (*status)(int descriptor, struct stat& status);
  layout::Kind (*file_system)(int descriptor);
  /// Starts to store dirty pages of the kernel's cache in a range.
  long (*start_writeback)(int descriptor, std::uint64_t offset, std::uint64_t bytes);
  /// Starts to read a range into the kernel's cache.
  long (*start_reading)(int descriptor, std::uint64_t offset, std::uint64_t bytes);
  /// True if the byte is in the kernel's cache; false also if the file system cannot tell.
  bool (*is_cached)(int descriptor, std::uint64_t offset);
  /// True if the host has memory for bytes that the program may never read.
  bool (*is_memory_free)();
};
extern SystemCalls system_calls;

/// The offset beyond which the kernel refuses writes (RLIMIT_FSIZE).
std::uint64_t file_size_limit();

/// The identity of a file on this host.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};
inline FileId file_id_of(const struct stat& status) { return {status.st_dev, status.st_ino}; }
/// True if the descriptor is open on the file; false also if the kernel rejects the query.
bool is_open_on(int descriptor, FileId id);

}  // namespace pario::buffers
