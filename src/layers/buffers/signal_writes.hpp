// Writes of signal handlers that have interrupted a call on the same file.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "layers/buffers/buffers.hpp"
#include "layers/buffers/handle.hpp"

namespace pario::buffers {

/// Keeps the bytes of such writes until the interrupted call ends. Used by one thread and the
/// signal handlers that interrupt it.
class SignalWrites {
 public:
  static constexpr std::size_t kCapacity = 4096;

  struct Write {
    Handle* handle;
    StartOffset at;
    iovec bytes;
  };

  /// The writes removed by remove_all(), in their order.
  class Batch {
   public:
    /// Returns the next write; false after the last one. Its bytes lie in the batch.
    bool next(Write& write);

   private:
    friend class SignalWrites;
    std::byte bytes_[kCapacity];
    std::size_t size_ = 0, at_ = 0;
  };

  bool is_empty() const { return size_.load(std::memory_order_relaxed) == 0; }
  /// Returns the number of bytes; -EBADF if the handle does not write, -EAGAIN if there is no
  /// space.
  long add(Handle& handle, std::span<const iovec> pieces, StartOffset at);
  /// Moves all writes into `batch`.
  void remove_all(Batch& batch);
  void clear() { size_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> size_{0};
  std::byte bytes_[kCapacity] = {};  ///< entries, each a header and its bytes
};

}  // namespace pario::buffers
