// Memory that the processes of a node share about a file: itself a file in /dev/shm, of one user, removed by the last that has it.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pario::stream {

/// Locks are those of the open description: the kernel ends them when their holder dies, however that comes about.
class NodeMemory {
 public:
  /// Opens the memory for a use of the file as it is now, or makes it: zeros, which take pages as they are reserved. False: there is none.
  bool open(std::string_view use, const struct stat& file, std::uint64_t bytes);
  /// The last one removes it.
  void close();
  /// In the child of a fork: its parent's lives on.
  void forget();

  bool is_open() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }
  /// Pages for a range; false: there are none, and touching it would end the process.
  bool reserve(std::uint64_t begin, std::uint64_t bytes) const;

  /// One of any number of locks, for one process at a time; false: another has it.
  bool lock(std::uint64_t number) const;
  void unlock(std::uint64_t number) const;

 private:
  bool enter(const char* path, std::uint64_t bytes);
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  char path_[160] = {};
};

}  // namespace pario::stream
