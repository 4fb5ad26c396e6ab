// Buffers for sieve windows.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

namespace pario::engine {

/// Keeps one buffer of a file for the next sieved access, because memory touched for the first time
/// is slow. Thread-safe.
class SieveBuffers {
 public:
  /// A buffer of at least the requested size, not zeroed; returns its memory when destroyed.
  class Buffer {
   public:
    Buffer(SieveBuffers& owner, std::unique_ptr<std::byte[]> data, std::size_t size)
        : owner_(owner), data_(std::move(data)), size_(size) {}
    ~Buffer() { owner_.return_memory(std::move(data_), size_); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    std::byte* data() const { return data_.get(); }

   private:
    SieveBuffers& owner_;
    std::unique_ptr<std::byte[]> data_;
    std::size_t size_;
  };

  Buffer get(std::size_t size) {
    const std::scoped_lock lock(mutex_);
    if (spare_ && spare_size_ >= size) return {*this, std::move(spare_), spare_size_};
    return {*this, std::unique_ptr<std::byte[]>(new std::byte[size]), size};
  }

 private:
  void return_memory(std::unique_ptr<std::byte[]> data, std::size_t size) {
    const std::scoped_lock lock(mutex_);
    if (spare_ && spare_size_ >= size) return;
    spare_ = std::move(data);
    spare_size_ = size;
  }

  std::mutex mutex_;
  std::unique_ptr<std::byte[]> spare_;
  std::size_t spare_size_ = 0;
};

}  // namespace pario::engine
