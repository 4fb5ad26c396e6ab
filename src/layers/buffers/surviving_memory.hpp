// Buffers that survive a killed process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "layers/buffers/buffer.hpp"

namespace pario::buffers {

/// Shared memory with the buffers of one file. A keeper (`pario run`,
/// python/pario/see/launch/keeper.py) maps it, too, and writes the dirty bytes to the file if the
/// process dies before writing them.
///
/// The memory begins with a Header; then come the buffers, and their bytes.
class SurvivingMemory {
 public:
  /// The positions, in bytes from the beginning of the memory and of a buffer, that the keeper
  /// reads.
  struct Header {
    std::uint64_t magic, size, count, buffers, stride, data, begin, state, ranges, range_count;
  };
  static constexpr std::uint64_t kMagic = 0x31454B4F49524150;

  /// Sets the abstract socket of this host's keeper; empty: there is none.
  static void set_keeper(std::string_view name);

  /// Creates at most `count` buffers of `size` bytes, as many as the memory limit allows, and sends
  /// them to the keeper with the file of a descriptor. Returns an empty text, or the reason for a
  /// failure.
  std::string_view create(int descriptor, std::uint64_t size, std::uint32_t count);
  /// Reports to the keeper that the file is complete, and releases the memory.
  void release();
  /// In the child of a fork, which does not inherit the memory.
  void reset_in_child();

  bool is_open() const { return memory_ != nullptr; }
  std::span<Buffer> buffers() const { return {buffers_, count_}; }

 private:
  long allocate(std::uint64_t size, std::uint32_t count);
  void fill_header(std::uint64_t size);
  void unmap();

  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t number_ = 0;  ///< identifies it to the keeper
  std::uint32_t count_ = 0;
  Buffer* buffers_ = nullptr;
};

}  // namespace pario::buffers
