// Memory that the processes of a node share about a file.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pario::buffers {

/// A file in /dev/shm of one user, which the last process that has it open removes.
///
/// Its locks are those of the open description (F_OFD_SETLK): the kernel releases them when
/// their holder ends, in any way.
class NodeMemory {
 public:
  /// Opens or creates the memory for a use of the file in its present state. New memory is zero,
  /// and gets pages when they are reserved. False if there is none.
  bool open(std::string_view use, const struct stat& file, std::uint64_t bytes);
  /// Removes the memory if no other process has it open.
  void close();
  /// Removes the name of the memory if no other process has it open; this process keeps the pages.
  void remove_name_if_alone() const;
  /// True if no other process has the memory open; others wait while `f` runs.
  template <class F>
  bool run_if_alone(F f) const {
    if (!lock_alone()) return false;
    f();
    share();
    return true;
  }
  /// Detaches from the parent's memory in the child of a fork; that memory stays.
  void reset_in_child();

  bool is_open() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }
  /// Reserves the pages of a range; false if there are none: touching the range would raise SIGBUS.
  bool reserve(std::uint64_t begin, std::uint64_t bytes) const;

  /// Acquires one of any number of locks for this process; false if another process holds it.
  bool lock(std::uint64_t number) const;
  void unlock(std::uint64_t number) const;

 private:
  bool try_open(std::uint64_t bytes);
  bool lock_alone() const;
  void share() const;

  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  char path_[160] = {};
};

}  // namespace pario::buffers
