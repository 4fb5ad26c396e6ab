// Small files that are kept whole in the process's memory, also while nobody has them open: a copy is right as long as the file's time
// stamps and size are those that it had, which is looked at when the file is opened and ten times a second.
#pragma once

#include <sys/stat.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

#include "stream/stream.hpp"

namespace pario::stream {

/// Belongs to the one who has attached it.
class Whole {
 public:
  /// Nothing of its file may have changed; asks the kernel now and then.
  bool is_right(int descriptor);
  /// The next look is at the kernel.
  void doubt() { looked_ = 0; }
  std::uint64_t size() const { return size_; }
  /// As preadv.
  long read(std::span<const iovec> pieces, std::uint64_t offset) const;

  // The table's, which holds its lock.
  bool is_used() const { return used_; }
  bool has_memory() const { return memory_ != nullptr; }
  bool is_of(const struct stat& file) const { return file_.st_dev == file.st_dev && file_.st_ino == file.st_ino; }
  bool is_copy_of(const struct stat& file) const;
  /// In what order those that are not used were used, the oldest first.
  bool is_older_than(const Whole& other) const { return turn_ < other.turn_; }
  void use(std::byte* memory, std::uint64_t size);
  void use_again() { used_ = true; }
  void put_back();
  void end();
  void finish(const struct stat& file) { file_ = file; }
  /// Reads the file, without the table's lock; false: it is not what it was, or not to be read.
  bool fetch(int descriptor, const struct stat& file, Statistics::Calls& calls);

 private:
  struct stat file_ = {};  ///< all zero: there is no copy, or not yet
  std::byte* memory_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t looked_ = 0;  ///< when it was last seen to be right, ns
  std::uint64_t turn_ = 0;
  bool used_ = false;
};

namespace whole {

/// The copy of an open file as it is now, of `most` bytes at most; null: it is larger, it has just been changed, or there is no memory.
/// What is read of it is added to `calls`.
Whole* attach(int descriptor, std::uint64_t most, Statistics::Calls& calls);
void detach(Whole& copy);
/// A moment from now, to try again what was not possible, and whether it has come, ns.
std::uint64_t later();
bool is_time(std::uint64_t when);
/// Memory for `bytes`, for which copies that nobody uses give way; null: there is none.
std::byte* take_memory(std::uint64_t bytes);
/// In the child of a fork, which has the copies, too.
void forget();

}  // namespace whole
}  // namespace pario::stream
