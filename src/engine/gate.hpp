// Keeps writes that put back what they have read (sieved ones) apart from plain writes of the ranks of a node: without that a plain write
// between the reading and the writing back would be lost. Plain writes pass together, sieved ones too (file locks keep those apart).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/base.hpp"
#include "comm/comm.hpp"

namespace pario::engine {

/// What ranks of a node share for one file; zeroed at first. `plain` of all ranks of the node follow.
struct Common {
  std::atomic<std::uint64_t> shared_pointer;
  std::atomic<std::uint32_t> sieving;  ///< writes under way or waiting
  base::FutexWord changes;             ///< changed and woken when somebody may go on
};
struct alignas(64) Plain {
  std::atomic<std::uint32_t> writing{0};     ///< plain writes of a rank under way
  std::array<std::byte, 60> otherwise = {};  ///< so that all of it is zero at first
};
inline std::size_t common_size(int ranks) { return sizeof(Plain) * (1 + static_cast<std::size_t>(ranks)); }
static_assert(sizeof(Common) <= sizeof(Plain));

class Gate {
 public:
  Gate(std::byte* common, comm::Comm& comm, const std::string& path)
      : common_(*reinterpret_cast<Common*>(common)), plain_(reinterpret_cast<Plain*>(common) + 1), comm_(comm), path_(path) {}
  Common& common() const { return common_; }

  /// Waits; an Error when a rank that is inside has died.
  base::Status enter(bool sieving);
  void leave(bool sieving);

 private:
  base::Status enter_plain();
  base::Status enter_sieving();
  base::Status wait(const std::function<bool()>& done);
  Plain& mine() const { return plain_[comm_.local_rank()]; }
  bool nobody_writes() const;
  void changed();

  Common& common_;
  Plain* plain_;
  comm::Comm& comm_;
  const std::string& path_;
};

/// Inside the gate while it lives, where status() is success.
class Passage {
 public:
  Passage(Gate& gate, bool sieving) : gate_(gate), sieving_(sieving), status_(gate.enter(sieving)) {}
  ~Passage() {
    if (status_) gate_.leave(sieving_);
  }
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;
  const base::Status& status() const { return status_; }

 private:
  Gate& gate_;
  bool sieving_;
  base::Status status_;
};

}  // namespace pario::engine
