// Detects other handles of the same file, which may write anywhere: bytes read may be written back
// only while no other handle can write the file.
//
// The state is in locks on ranges far behind all data. A handle that may write holds one lock while
// it is open; a rank holds the ranges of all other handles during a read-modify-write.
#pragma once

#include <cstdint>
#include <mutex>

#include "core/file/file.hpp"
#include "parallel/engine/worker.hpp"

namespace pario::engine {

/// When a rank keeps the locks after a read-modify-write.
struct Lease {
  unsigned uses_before = 16;             ///< read-modify-writes that give them back at once
  std::uint64_t longest_ns = 2'000'000;  ///< then they are given back, because a handle may wait
  std::uint64_t idle_ns = 5'000'000;     ///< after the last read-modify-write
};

/// The locks of one rank. Thread-safe.
class HandleLocks {
 public:
  /// `handle`: any number, the same on all ranks of the handle and on no others.
  HandleLocks(file::File& file, std::uint64_t handle, Lease lease = {});
  ~HandleLocks() { end_lease(); }
  HandleLocks(const HandleLocks&) = delete;
  HandleLocks& operator=(const HandleLocks&) = delete;

  /// Registers this handle as a writer until the file is closed: no other handle starts a
  /// read-modify-write. Waits for those in flight. Called by one rank of each node. No effect if
  /// the file has no locks (then try_begin() always fails), or if another program has locked the
  /// whole file. An error: the file has locks, and other handles cannot detect this one.
  base::Status register_writer(int node);
  /// True: no other handle can write the file until end(). Does not wait.
  bool try_begin();
  void end();
  /// Called before the file is closed: no read-modify-write begins any more.
  void end_lease();

 private:
  bool is_locked_by_other_program();
  bool lock_others();
  void unlock_others();
  void release();
  void start_watcher();
  void watch_lease();
  bool release_idle();

  file::File& file_;
  const base::Extent own_;
  const Lease lease_;
  std::mutex mutex_;
  int active_ = 0;
  unsigned uses_ = 0;  // read-modify-writes that had no other beside them
  bool held_ = false;  // the ranges of all other handles
  bool watched_ = false;
  std::uint64_t since_ns_ = 0, last_use_ns_ = 0;
  base::FutexWord closing_{0};
  Worker watcher_;  // gives idle locks back; last: ends first
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
