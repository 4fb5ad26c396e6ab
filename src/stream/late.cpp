// What signal handlers write that have interrupted the holder of a file: kept, and taken up when it lets go.
#include <cerrno>
#include <cstring>

#include "stream/file.hpp"

namespace pario::stream {
namespace {

struct Late {
  Handle* handle;
  At at;
  std::uint64_t bytes;
};

}  // namespace

long File::take_late(Handle& handle, std::span<const iovec> pieces, At at) {
  const std::uint64_t bytes = bytes_of(pieces);
  std::size_t size = late_size_.load(std::memory_order_relaxed);
  if (!handle.writes) return -EBADF;
  if (size + sizeof(Late) + bytes > kLateBytes) return -EAGAIN;
  const Late late{&handle, at, bytes};
  std::memcpy(late_ + size, &late, sizeof late);
  size += sizeof late;
  for (const iovec& piece : pieces) {
    if (piece.iov_len != 0) std::memcpy(late_ + size, piece.iov_base, piece.iov_len);
    size += piece.iov_len;
  }
  late_size_.store(size, std::memory_order_relaxed);
  return static_cast<long>(bytes);
}

void File::catch_up(Lock& lock) {
  std::byte bytes[kLateBytes];
  std::size_t size = late_size_.load(std::memory_order_relaxed);
  do std::memcpy(bytes, late_, size);  // another one may come meanwhile
  while (!late_size_.compare_exchange_strong(size, 0, std::memory_order_relaxed));
  for (std::size_t at = 0; at < size;) {
    Late late;
    std::memcpy(&late, bytes + at, sizeof late);
    const iovec piece{bytes + at + sizeof late, late.bytes};
    if (late.handle->file == this && write_locked(lock, *late.handle, {&piece, 1}, late.at) == kPass)
      kernel.write(late.handle->descriptor, piece.iov_base, piece.iov_len);
    at += sizeof late + late.bytes;
  }
}

}  // namespace pario::stream
