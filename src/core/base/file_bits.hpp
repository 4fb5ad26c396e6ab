// Sets of files in static memory.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "core/base/xxhash.hpp"

namespace pario::base {

/// A bit per file, found by a hash of device and inode: two files may share a bit. Thread-safe.
class FileBits {
 public:
  bool has(const struct stat& file) const {
    return (word_of(file).load(std::memory_order_relaxed) & mask_of(file)) != 0;
  }
  void set(const struct stat& file, bool value) {
    if (value)
      word_of(file).fetch_or(mask_of(file), std::memory_order_relaxed);
    else
      word_of(file).fetch_and(~mask_of(file), std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kBits = 1 << 15;

  static std::size_t bit_of(const struct stat& file) {
    const std::uint64_t name[] = {file.st_dev, file.st_ino};
    return xxh64({reinterpret_cast<const char*>(name), sizeof name}) % kBits;
  }
  static std::uint64_t mask_of(const struct stat& file) { return 1ull << (bit_of(file) % 64); }
  std::atomic<std::uint64_t>& word_of(const struct stat& file) { return words_[bit_of(file) / 64]; }
  const std::atomic<std::uint64_t>& word_of(const struct stat& file) const {
    return words_[bit_of(file) / 64];
  }

  std::array<std::atomic<std::uint64_t>, kBits / 64> words_ = {};
};

}  // namespace pario::base
