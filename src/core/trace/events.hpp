// Events: stored in the tail of their thread, merged near the limit, compressed into chunks when
// the tail is full.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/trace/threads.hpp"
#include "core/trace/trace.hpp"

namespace pario::trace {

class Log;

/// Returns the window in microseconds within which like events are merged, from the bytes of chunks
/// written: 0 (no merging) up to half of the limit, then 10 ms, and ten times more each time half
/// of the rest is used up.
std::uint64_t merge_window_us(std::uint64_t bytes, std::uint64_t limit);

/// Merges `event` into the last like event among the last rows of the tail that began within
/// `window` ticks. Returns false if there is none.
bool merge(Event* tail, std::uint32_t count, const Event& event, std::uint64_t window,
           std::uint64_t ticks_per_second);

class EventWriter {
 public:
  void begin(std::uint64_t limit) { limit_ = limit; }
  bool on() const { return limit_ != 0; }
  /// Stores an event in the slot of its thread; on the slow path, writes a chunk first.
  void store(Slot& slot, const Event& event) {
    if (window_ != 0 || slot.block->count == slot.capacity) [[unlikely]] {
      store_slowly(slot, event);
      return;
    }
    append(slot, event);
  }
  /// Writes the tail of the slot as a chunk. The caller holds the slot.
  void flush(Slot& slot);

 private:
  struct Workspace;
  static constexpr int kWorkspaces = 4;

  static void append(Slot& slot, const Event& event) {
    const std::uint32_t row = slot.block->count;
    slot.tail[row] = event;
    std::atomic_ref(slot.block->count).store(row + 1, std::memory_order_release);
  }
  void store_slowly(Slot& slot,
                    Event event);  // a copy, so that the `event` of store() stays in registers
  int lock_workspace();
  Workspace* workspace(int at);
  bool write_chunk(Workspace& workspace, const Slot& slot);
  void coarsen(std::uint64_t bytes);

  std::uint64_t limit_ = 0;
  std::uint64_t window_ = 0;  // ticks
  Workspace* workspaces_[kWorkspaces] = {};
  std::uint64_t locks_[kWorkspaces] = {};
};

}  // namespace pario::trace
