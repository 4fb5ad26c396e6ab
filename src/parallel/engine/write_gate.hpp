// Separates read-modify-writes of a file from plain writes of the ranks of a node.
//
// Without the gate a plain write between the read and the write-back of a sieve window would be
// lost. Any number of plain writes pass together, and any number of read-modify-writes (range locks
// separate these from each other).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/base/base.hpp"
#include "core/comm/comm.hpp"
#include "parallel/engine/pointer_store.hpp"

namespace pario::engine {

/// The memory that the ranks of a node share for one file; zeroed at first. One PlainWrites per
/// rank of the node follows.
struct NodeState {
  PointerWords shared_pointer;
  std::atomic<std::uint32_t> modifying;  ///< read-modify-writes inside or waiting
  base::FutexWord changes;               ///< changed and woken when a waiting rank may continue
};
struct alignas(64) PlainWrites {
  std::atomic<std::uint32_t> count{0};     ///< plain writes of a rank inside
  std::array<std::byte, 60> padding = {};  ///< explicit, so that all of it is zeroed
};
inline std::size_t node_state_size(int ranks) {
  return sizeof(PlainWrites) * (1 + static_cast<std::size_t>(ranks));
}
static_assert(sizeof(NodeState) <= sizeof(PlainWrites));

/// The gate of one file and node. Thread-safe.
class WriteGate {
 public:
  enum class Write : std::uint8_t { plain, modify };

  /// `memory`: node_state_size() bytes, shared by the ranks of the node. It, `comm` and `path` must
  /// outlive the gate.
  WriteGate(std::byte* memory, comm::Comm& comm, const std::string& path)
      : state_(*reinterpret_cast<NodeState*>(memory)),
        plain_(reinterpret_cast<PlainWrites*>(memory) + 1),
        own_count_(plain_[comm.local_rank()].count),
        comm_(comm),
        path_(path) {}
  NodeState& state() const { return state_; }

  /// Waits until no write of the other kind is inside. An Error if a rank inside has died.
  base::Status enter(Write write);
  /// Called once after each successful enter().
  void leave(Write write);

 private:
  base::Status enter_plain();
  base::Status enter_modify();
  base::Status wait(const std::function<bool()>& done);
  bool has_plain_writes() const;
  void wake_waiting();

  NodeState& state_;
  PlainWrites* plain_;
  std::atomic<std::uint32_t>& own_count_;
  comm::Comm& comm_;
  const std::string& path_;
};

/// Inside the gate during its lifetime if status() is success. Without a gate (reads): does
/// nothing.
class GatePass {
 public:
  GatePass(WriteGate* gate, WriteGate::Write write) : gate_(gate), write_(write) {
    if (gate_ != nullptr) status_ = gate_->enter(write);
  }
  ~GatePass() {
    if (gate_ != nullptr && status_) gate_->leave(write_);
  }
  GatePass(const GatePass&) = delete;
  GatePass& operator=(const GatePass&) = delete;
  const base::Status& status() const { return status_; }

 private:
  WriteGate* gate_;
  WriteGate::Write write_;
  base::Status status_ = {};
};

}  // namespace pario::engine
