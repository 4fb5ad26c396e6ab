// The blocks of an object in memory. A private header.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/base.hpp"

namespace pario::file {

/// Keeps the blocks of an object that were read; each is fetched once. Any thread.
class MemoryBlocks {
 public:
  static constexpr std::uint64_t kBlock = 1 << 20;

  /// `size`: bytes of the object.
  explicit MemoryBlocks(std::uint64_t size)
      : size_(size), blocks_(base::round_up(size, kBlock) / kBlock) {}

  /// Fetches a range of the object.
  using Fetch = std::function<base::Status(std::uint64_t offset, std::span<std::byte> out)>;
  /// Reads a range within the object. A block that could not be fetched is fetched again.
  base::Status read(std::uint64_t offset, std::span<std::byte> out, const Fetch& fetch);

 private:
  struct Block {
    std::mutex mutex;
    std::vector<std::byte> bytes;  ///< empty until they are fetched; then they never change
  };
  /// Fetches the block `first` unless it was fetched, by one request with the following ones before
  /// `end` that were not fetched either, and that no other thread fetches.
  base::Status fetch_missing(std::uint64_t first, std::uint64_t end, const Fetch& fetch);

  std::uint64_t size_;
  std::vector<Block> blocks_;
};

}  // namespace pario::file
