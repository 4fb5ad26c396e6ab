// Copies of small files in the memory of the process (hint `whole`).
#pragma once

#include <sys/stat.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "layers/buffers/buffers.hpp"

namespace pario::buffers {

/// The contents of a small file. Kept also while the process does not have the file open. Valid
/// while the file's size and time stamps stay the same, which is checked when the file is opened
/// and ten times a second. Owned by the file that has attached it.
class ProcessCopy {
 public:
  /// True if the file has not changed; asks the kernel if the last check is too old.
  bool is_valid(int descriptor);
  /// Makes the next is_valid() ask the kernel.
  void expire() { checked_ns_ = 0; }
  std::uint64_t size() const { return size_; }
  /// As preadv(2).
  long read(std::span<const iovec> pieces, std::uint64_t offset) const;

  // The functions below are called with the lock of the table of copies held, except fetch().
  bool is_used() const { return used_; }
  bool has_memory() const { return memory_ != nullptr; }
  bool is_of_file(const struct stat& file) const {
    return file_.st_dev == file.st_dev && file_.st_ino == file.st_ino;
  }
  bool is_copy_of(const struct stat& file) const;
  /// Compares unused copies: true if this one was used before the other.
  bool is_older_than(const ProcessCopy& other) const { return released_at_ < other.released_at_; }
  void assign(std::byte* memory, std::uint64_t size);
  void use() { used_ = true; }
  void release();
  void discard();
  void set_file(const struct stat& file) { file_ = file; }
  /// Reads the file. False if it changes meanwhile or cannot be read.
  bool fetch(int descriptor, const struct stat& file, Statistics::Calls& calls);

 private:
  struct stat file_ = {};  ///< state of the file that was copied; all zero: none yet
  std::byte* memory_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t checked_ns_ = 0;   ///< time of the last successful check
  std::uint64_t released_at_ = 0;  ///< number of the release
  bool used_ = false;
};

namespace process_copies {

/// Returns the copy of an open file of at most `most` bytes, and adds the system calls of reading
/// it to `calls`. Null if the file is larger, has just been changed, or finds no memory.
ProcessCopy* attach(int descriptor, std::uint64_t most, Statistics::Calls& calls);
void detach(ProcessCopy& copy);
/// The time of the next attempt to attach a copy after a failure, ns.
std::uint64_t next_attempt_ns();
bool is_reached(std::uint64_t time_ns);
/// Allocates memory for buffers; unused copies are evicted for it. Null if there is none.
std::byte* allocate_memory(std::uint64_t bytes);
/// In the child of a fork, which inherits the copies.
void reset_in_child();

}  // namespace process_copies
}  // namespace pario::buffers
