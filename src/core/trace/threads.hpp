// Thread slots: function counters and event tail of one thread, in a live block of the log. A slot
// outlives its thread and is reused by a later one.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/trace/format.hpp"
#include "core/trace/trace.hpp"

namespace pario::trace {

class Log;

namespace detail {

struct Slot {
  BlockHeader* block;
  std::uint64_t place;  // offset of the block in the file
  Event* tail;
  std::uint64_t in_use;  // 0: free, 1: in use
  std::uint32_t capacity;
  std::uint8_t number;
  CallRow* calls;         // kNestedCalls rows, directly before the tail
  void* sites = nullptr;  // table of call sites (sites.cpp)

  FunctionRow* functions() const { return reinterpret_cast<FunctionRow*>(block->payload()); }
};

}  // namespace detail

using detail::Slot;

class Threads {
 public:
  void begin(std::size_t functions, bool with_events);
  /// Acquires a slot for the calling thread, until release(). Null if no block can be reserved.
  Slot* acquire(Log& log);
  static void release(Slot* slot);
  /// Frees the disk space of an empty tail except for a small part: few events follow finish(). The
  /// caller holds the slot.
  static void shrink(Slot& slot, Log& log);

  /// Calls `f` with every free slot, holding it meanwhile.
  template <class F>
  void for_each_free(F&& f) {
    const std::uint32_t count = std::atomic_ref(count_).load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!claim(slots_[i])) continue;
      f(slots_[i]);
      release(&slots_[i]);
    }
  }

 private:
  static constexpr std::uint32_t kMostSlots = 4096;

  static bool claim(Slot& slot) {
    return std::atomic_ref(slot.in_use).exchange(1, std::memory_order_acquire) == 0;
  }
  Slot* claim_free();
  Slot* add_slot(Log& log);

  std::uint64_t lock_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t functions_ = 0;
  bool with_events_ = false;
  Slot* slots_ = nullptr;  // mapped with the first slot
};

namespace detail {
Slot* take_slot();
}

/// Returns the slot of the calling thread; null if it cannot have one.
inline Slot* my_slot() {
  Slot* slot = detail::context.slot;
  return slot != nullptr ? slot : detail::take_slot();
}

}  // namespace pario::trace
