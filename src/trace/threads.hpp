// Thread slots: the function counters and the event tail of one thread, in a live block of the log. A slot outlives its thread and is
// given to a later one.
#pragma once

#include <atomic>
#include <cstdint>

#include "trace/format.hpp"
#include "trace/trace.hpp"

namespace pario::trace {

class Log;

namespace detail {

struct Slot {
  BlockHeader* block;
  std::uint64_t place;  // of the block in the file
  Event* tail;
  std::uint64_t taken;  // 0: free, 1: a thread's
  std::uint32_t capacity;
  std::uint8_t number;

  FunctionRow* functions() const { return reinterpret_cast<FunctionRow*>(block->payload()); }
};

}  // namespace detail

using detail::Slot;

class Threads {
 public:
  void begin(std::size_t functions, bool with_events);
  /// A slot for the calling thread, until release(). Null when there is no room for one more.
  Slot* acquire(Log& log);
  static void release(Slot* slot);
  /// Gives the pages of an empty tail back to the disk, but for a small part: after finish() few events follow. The slot is the caller's.
  static void shrink(Slot& slot, Log& log);

  /// Calls `f` with every slot that no thread has, holding it meanwhile.
  template <class F>
  void for_each_free(F&& f) {
    const std::uint32_t count = std::atomic_ref(count_).load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!take(slots_[i])) continue;
      f(slots_[i]);
      release(&slots_[i]);
    }
  }

 private:
  static constexpr std::uint32_t kMostSlots = 4096;

  static bool take(Slot& slot) { return std::atomic_ref(slot.taken).exchange(1, std::memory_order_acquire) == 0; }
  Slot* take_free();
  Slot* add_slot(Log& log);

  std::uint64_t lock_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t functions_ = 0;
  bool with_events_ = false;
  Slot* slots_ = nullptr;  // made with the first one
};

namespace detail {
Slot* take_slot();
}

/// The calling thread's slot; null when it cannot have one.
inline Slot* my_slot() {
  Slot* slot = detail::context.slot;
  return slot != nullptr ? slot : detail::take_slot();
}

}  // namespace pario::trace
