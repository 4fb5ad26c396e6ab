// The process log as a file: reserves live blocks, appends written ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "trace/format.hpp"

namespace pario::trace {

/// All functions are thread-safe but open().
class Log {
 public:
  /// Creates the file HOST.PID.`start_ns`.plog in `directory` (absolute; it is made when only its last part is missing). 0 or -errno.
  int open(const char* directory, std::uint64_t start_ns);
  /// Takes the file away again: for a start that failed.
  void discard();
  /// In a forked child: closes the descriptor, touches nothing else.
  void abandon();

  /// A new live block whose payload holds at least `payload` bytes, zeroed and mapped; its pages exist on disk before they are mapped.
  /// Null when there is no room: then no further live block is tried.
  /// `place`: where it lies in the file.
  BlockHeader* reserve(BlockKind kind, std::size_t payload, std::uint64_t* place = nullptr);
  /// Gives whole pages within a range of the file back to the disk; they read as zeros. They must not be written again.
  void give_back(std::uint64_t begin, std::uint64_t end);

  /// Writes a finished block: `header` is followed in memory by its payload (header.used bytes) and room up to a whole page. Fills in
  /// what is left of the header. 0 or -errno.
  int append(BlockHeader* header);

  /// -errno of the first time that room was refused, to be told once; then 0.
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
  bool full_ = false;      // no further live block is tried
  bool troubled_ = false;  // room was refused at least once
  int trouble_ = 0;
  std::uint64_t device_ = 0, inode_ = 0;
  std::uint64_t end_ = 0;
  std::uint32_t blocks_[kBlockKinds] = {};
  char path_[4096] = {};
};

}  // namespace pario::trace
