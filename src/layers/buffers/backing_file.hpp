// The file beneath the buffers: its identity, and transfers between it and buffers.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/base/base.hpp"
#include "layers/buffers/buffer.hpp"
#include "layers/buffers/buffers.hpp"
#include "layers/buffers/system_calls.hpp"

namespace pario::buffers {

/// The system calls of a transfer, and its error.
struct TransferResult {
  Statistics::Calls calls = {};
  long error = 0;  ///< -errno; 0: none
};

/// The file beneath the buffers. Transfers need no lock: only their thread touches a buffer that is
/// queued or being read.
class BackingFile {
 public:
  /// `writeback`: bytes after which the kernel is asked to store them.
  void set(FileId id, std::string_view path, std::uint64_t writeback);
  FileId id() const { return id_; }
  std::string_view path() const { return {path_, path_size_}; }

  /// Writes the valid bytes of a buffer, at their offsets or at the end of the file. Continues
  /// after short and interrupted writes; after an error it reports the lost bytes.
  TransferResult write(const Buffer& buffer, bool appends) const;
  /// Fills the buffer with at most `size` bytes of its window, in one call; an error leaves it
  /// empty.
  Statistics::Calls read(Buffer& buffer, std::uint64_t size) const;

 private:
  void write_range(const Buffer& buffer, ByteRanges::Range range, bool appends,
                   TransferResult& result) const;
  void start_writeback(const Buffer& buffer) const;
  void report_lost_bytes(long error, base::Extent range) const;

  FileId id_ = {};
  std::uint64_t writeback_ = 0;
  std::size_t path_size_ = 0;
  char path_[512] = {};
};

}  // namespace pario::buffers
