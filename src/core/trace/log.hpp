// The process log as a file: reserves live blocks, appends finished ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/trace/format.hpp"

namespace pario::trace {

/// Thread-safe except for open().
class Log {
 public:
  /// Creates the file HOST.PID.`start_ns`.plog in `directory` (absolute; created if only its last
  /// part is missing). Returns 0 or -errno.
  int open(const char* directory, std::uint64_t start_ns);
  /// Removes the file, after a failed start.
  void discard();
  /// Closes the descriptor in a forked child, and nothing else.
  void abandon();

  /// Reserves a live block with at least `payload` bytes of payload, zeroed and mapped; its pages
  /// exist on disk before they are mapped. Returns null if the disk is full; no further live block
  /// is reserved then. `place`: its offset in the file.
  BlockHeader* reserve(BlockKind kind, std::size_t payload, std::uint64_t* place = nullptr);
  /// Frees the disk space of whole pages within a range of the file; they read as zeros. They must
  /// not be written again.
  void give_back(std::uint64_t begin, std::uint64_t end);

  /// Appends a finished block: in memory, `header` is followed by its payload (header.used bytes)
  /// and by space up to a whole page. Completes the header. Returns 0 or -errno.
  int append(BlockHeader* header);

  /// Returns -errno of the first failed reservation, once; then 0.
  int take_trouble() { return std::atomic_ref(trouble_).exchange(0, std::memory_order_relaxed); }

  int descriptor() const { return descriptor_; }
  const char* path() const { return path_; }

 private:
  int check_descriptor();
  int preallocate(std::uint64_t offset, std::size_t size);
  int write_range(const BlockHeader* header, std::size_t size);
  void note_trouble(int error);
  std::uint64_t take_range(std::size_t size);
  void fill(BlockHeader* header, BlockKind kind, std::size_t size);

  int descriptor_ = -1;
  bool full_ = false;      // no further live block is reserved
  bool troubled_ = false;  // a reservation has failed
  int trouble_ = 0;
  std::uint64_t device_ = 0, inode_ = 0;
  std::uint64_t end_ = 0;
  std::uint32_t blocks_[kBlockKinds] = {};
  char path_[4096] = {};
};

}  // namespace pario::trace
