// The buffers of one file.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/hints/hints.hpp"
#include "layers/buffers/buffer.hpp"
#include "layers/buffers/surviving_memory.hpp"

namespace pario::buffers {

/// Owns the buffers and their memory, and finds the buffer of a window. A window begins at a
/// multiple of size(), except in files that are appended to.
class WindowCache {
 public:
  /// Allocates memory for the first buffer, or surviving memory for all. False if there is none. If
  /// surviving memory is not available, `hints.survive` becomes false.
  bool allocate(hints::StreamHints& hints, int descriptor);
  void release();
  /// Drops all contents and releases the memory, in the child of a fork.
  void reset_in_child();

  /// Bytes of a buffer.
  std::uint64_t size() const { return size_; }
  std::uint32_t count() const { return count_; }
  std::span<Buffer> all() const { return {buffers_, count_}; }

  bool has(Buffer::State state) const;
  Buffer* find_dirty(std::uint64_t begin) const;
  Buffer* find_read_ahead(std::uint64_t begin) const {
    for (Buffer& buffer : all())
      if (buffer.is_read_ahead() && buffer.begin == begin) return &buffer;
    return nullptr;
  }
  /// The buffer that was dirty first among those that are not queued.
  Buffer* find_oldest_filling() const;
  /// The dirty buffer that is first in the file; among appending buffers the oldest.
  Buffer* find_first_dirty() const;
  /// An empty buffer with memory; null if there is none.
  Buffer* find_empty();
  /// The bytes of a range if one buffer that is not queued holds all of them; otherwise null.
  const std::byte* find_dirty_bytes(std::uint64_t offset, std::uint64_t bytes) const;
  /// The end of the last dirty byte; 0 if there is none.
  std::uint64_t dirty_end() const;

  /// True if a buffer could not get memory.
  bool lacks_memory() const { return lacks_memory_; }
  std::uint64_t allocated_count() const;
  /// The reason why buffers do not survive although the hints request it; empty: they do, or need
  /// not.
  std::string_view survive_failure() const { return survive_failure_; }

 private:
  static constexpr std::uint32_t kMostBuffers = 64;

  void release_own();

  Buffer own_[kMostBuffers];
  Buffer* buffers_ = nullptr;  ///< own_, or those of surviving_
  std::uint32_t count_ = 0;
  std::uint64_t size_ = 0;
  bool lacks_memory_ = false;
  SurvivingMemory surviving_ = {};
  std::string_view survive_failure_ = {};
};

}  // namespace pario::buffers
