#include "layers/buffers/signal_writes.hpp"

#include <cerrno>
#include <cstring>

#include "layers/buffers/pieces.hpp"
#include "layers/buffers/statistics.hpp"

namespace pario::buffers {
namespace {

struct SignalWriteHeader {
  Handle* handle;
  StartOffset at;
  std::uint64_t bytes;
};

}  // namespace

long SignalWrites::add(Handle& handle, std::span<const iovec> pieces, StartOffset at) {
  const std::uint64_t bytes = bytes_of(pieces);
  std::size_t size = size_.load(std::memory_order_relaxed);
  if (!handle.writes) return -EBADF;
  if (size + sizeof(SignalWriteHeader) + bytes > kCapacity) return -EAGAIN;
  const SignalWriteHeader header{&handle, at, bytes};
  std::memcpy(bytes_ + size, &header, sizeof header);
  size += sizeof header;
  gather(pieces, bytes_ + size);
  size_.store(size + bytes, std::memory_order_relaxed);
  return static_cast<long>(bytes);
}

void SignalWrites::remove_all(Batch& batch) {
  std::size_t size = size_.load(std::memory_order_relaxed);
  do std::memcpy(batch.bytes_, bytes_, size);  // a signal handler may add another one meanwhile
  while (!size_.compare_exchange_strong(size, 0, std::memory_order_relaxed));
  batch.size_ = size;
  batch.at_ = 0;
}

bool SignalWrites::Batch::next(Write& write) {
  if (at_ >= size_) return false;
  SignalWriteHeader header;
  std::memcpy(&header, bytes_ + at_, sizeof header);
  at_ += sizeof header;
  write = {header.handle, header.at, {bytes_ + at_, header.bytes}};
  at_ += header.bytes;
  return true;
}

}  // namespace pario::buffers
