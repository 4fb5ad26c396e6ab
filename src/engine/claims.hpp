// Other handles of the same file. Whoever has it open writes where he likes and asks nobody, so bytes that were read may be written back
// only while no other handle can write the file.
//
// Locks on bytes far behind all data tell: a handle that may write holds one as long as it is open, and who reads to write back holds
// those of all others meanwhile.
#pragma once

#include <cstdint>
#include <mutex>

#include "storage/storage.hpp"

namespace pario::engine {

/// Those of one rank. Thread-safe.
class Claims {
 public:
  /// `handle`: any number, the same on all ranks of the handle and on no others.
  Claims(storage::File& file, std::uint64_t handle);
  /// From now on no other handle writes back what it has read; waits for those that do so now. By one rank of each node, until the file is
  /// closed. Where the file has no locks nobody is told, and nobody begins; where a stranger has locked all of it nobody is told either.
  void stay(int node);
  /// True: no other handle can write the file until end(). Does not wait.
  bool begin();
  void end();

 private:
  bool is_shut_by_strangers();
  bool lock_others();
  void unlock_others();

  storage::File& file_;
  const base::Extent own_;
  std::mutex mutex_;
  int begun_ = 0;
};

/// Begins when it is first asked for, ends when it goes. Used by one thread.
class Claim {
 public:
  explicit Claim(Claims& claims) : claims_(claims) {}
  ~Claim() {
    if (state_ == State::granted) claims_.end();
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  bool granted() {
    if (state_ == State::unknown) state_ = claims_.begin() ? State::granted : State::refused;
    return state_ == State::granted;
  }

 private:
  enum class State : std::uint8_t { unknown, granted, refused };
  Claims& claims_;
  State state_ = State::unknown;
};

}  // namespace pario::engine
