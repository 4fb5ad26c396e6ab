// The pieces of memory of one call (iovec).
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace pario::buffers {

inline std::uint64_t bytes_of(std::span<const iovec> pieces) {
  std::uint64_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

/// Copies all bytes of the pieces to `to`.
inline void gather(std::span<const iovec> pieces, std::byte* to) {
  for (const iovec& piece : pieces) {
    if (piece.iov_len != 0) std::memcpy(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
}

/// Copies bytes to the pieces, as many as fit; returns their number.
inline long scatter(std::span<const std::byte> from, std::span<const iovec> pieces) {
  std::size_t done = 0;
  for (const iovec& piece : pieces) {
    const std::size_t bytes = std::min(piece.iov_len, from.size() - done);
    if (bytes != 0) std::memcpy(piece.iov_base, from.data() + done, bytes);
    done += bytes;
  }
  return static_cast<long>(done);
}

}  // namespace pario::buffers
