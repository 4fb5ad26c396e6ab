// Events: stored in the thread's tail, merged when the bound comes near, compressed into chunks when the tail is full.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trace/threads.hpp"
#include "trace/trace.hpp"

namespace pario::trace {

class Log;

/// How far coarsening has gone, from the bytes of chunks written: nothing before half the limit, then calls that begin within 10 ms
/// become one event, and tenfold each time half of the rest is used. In microseconds; 0: every call its event.
std::uint64_t merge_window_us(std::uint64_t bytes, std::uint64_t limit);

/// Adds `event` to the last like event among the tail's last few rows that began within `window` ticks. False when there is none.
bool merge(Event* tail, std::uint32_t count, const Event& event, std::uint64_t window, std::uint64_t ticks_per_second);

class EventWriter {
 public:
  void begin(std::uint64_t limit) { limit_ = limit; }
  bool on() const { return limit_ != 0; }
  /// Stores an event in its thread's slot; the slow path, now and then, writes a chunk.
  void store(Slot& slot, const Event& event) {
    if (window_ != 0 || slot.block->count == slot.capacity) [[unlikely]] {
      store_slowly(slot, event);
      return;
    }
    append(slot, event);
  }
  /// Writes the slot's tail as a chunk. The slot is the caller's.
  void flush(Slot& slot);

 private:
  struct Workspace;
  static constexpr int kWorkspaces = 4;

  static void append(Slot& slot, const Event& event) {
    const std::uint32_t row = slot.block->count;
    slot.tail[row] = event;
    std::atomic_ref(slot.block->count).store(row + 1, std::memory_order_release);
  }
  void store_slowly(Slot& slot, Event event);  // a copy: so `event` of store() needs no place in memory but its row
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
