// Complete transfers by calls of the C library, which tracers see; base::write_all() and
// base::read_all() bypass them. A further public header, for modules that own descriptors.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pario::base {

/// The bytes that were moved, and the errno that ended the transfer; 0: complete, or an attempt
/// moved nothing.
struct Moved {
  std::size_t bytes = 0;
  int number = 0;
};

/// Repeats `attempt(done)`, a call such as pread() for the bytes from `done` on, until `size` bytes
/// are moved, or it moves none. After EINTR it is repeated, too.
template <class Attempt>
Moved move_all(std::size_t size, Attempt attempt) {
  Moved moved;
  while (moved.bytes < size) {
    const ssize_t some = attempt(moved.bytes);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) moved.number = errno;
    if (some <= 0) break;
    moved.bytes += static_cast<std::size_t>(some);
  }
  return moved;
}

inline Moved pread_all(int descriptor, std::span<std::byte> out, std::uint64_t offset) {
  return move_all(out.size(), [&](std::size_t done) {
    return ::pread(descriptor, out.data() + done, out.size() - done,
                   static_cast<off_t>(offset + done));
  });
}

inline Moved pwrite_all(int descriptor, std::span<const std::byte> data, std::uint64_t offset) {
  return move_all(data.size(), [&](std::size_t done) {
    return ::pwrite(descriptor, data.data() + done, data.size() - done,
                    static_cast<off_t>(offset + done));
  });
}

}  // namespace pario::base
