// Detects other handles of the same file, which may write anywhere: bytes read may be written back
// only while no other handle can write the file.
//
// The state is in locks on ranges far behind all data. A handle that may write holds one lock while
// it is open; a rank holds the ranges of all other handles during a read-modify-write.
#pragma once

#include <cstdint>
#include <mutex>

#include "core/file/file.hpp"

namespace pario::engine {

/// The locks of one rank. Thread-safe.
class HandleLocks {
 public:
  /// `handle`: any number, the same on all ranks of the handle and on no others.
  HandleLocks(file::File& file, std::uint64_t handle);

  /// Registers this handle as a writer until the file is closed: no other handle starts a
  /// read-modify-write. Waits for those in flight. Called by one rank of each node. No effect if
  /// the file has no locks (then try_begin() always fails), or if another program has locked the
  /// whole file.
  void register_writer(int node);
  /// True: no other handle can write the file until end(). Does not wait.
  bool try_begin();
  void end();

 private:
  bool is_locked_by_other_program();
  bool lock_others();
  void unlock_others();

  file::File& file_;
  const base::Extent own_;
  std::mutex mutex_;
  int active_ = 0;
};

/// Permission for read-modify-writes, obtained by the first obtain() and kept for its lifetime.
/// Used by one thread.
class ModifyPermit {
 public:
  explicit ModifyPermit(HandleLocks& locks) : locks_(locks) {}
  ~ModifyPermit() {
    if (state_ == State::granted) locks_.end();
  }
  ModifyPermit(const ModifyPermit&) = delete;
  ModifyPermit& operator=(const ModifyPermit&) = delete;
  bool obtain() {
    if (state_ == State::unknown) state_ = locks_.try_begin() ? State::granted : State::refused;
    return state_ == State::granted;
  }

 private:
  enum class State : std::uint8_t { unknown, granted, refused };
  HandleLocks& locks_;
  State state_ = State::unknown;
};

}  // namespace pario::engine
