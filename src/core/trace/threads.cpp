#include "core/trace/threads.hpp"

#include <pthread.h>

#include "core/trace/state.hpp"

namespace pario::trace {

constinit thread_local detail::Context detail::context
    __attribute__((tls_model("initial-exec"))) = {};

namespace {

constexpr std::uint32_t
    kLargeTail = 8128,
    kSmallTail = 1984;  // not a power of two, so that planes of columns use different cache sets
constexpr std::uint32_t kShrunkTail = 128;  // after finish()
constexpr std::uint32_t kLargeTails = 8;    // further threads get the small tail
constexpr pthread_key_t kKeysWithoutMalloc =
    32;  // in glibc, pthread_setspecific of a higher key may allocate

pthread_key_t slot_key;
bool has_slot_key = false;

/// Releases the slot at the end of its thread.
void release_slot(void* slot) {
  detail::context.slot = nullptr;
  detail::context.calls = nullptr;
  Threads::release(static_cast<Slot*>(slot));
}

void make_slot_key() {
  if (has_slot_key) return;
  has_slot_key = pthread_key_create(&slot_key, release_slot) == 0 && slot_key < kKeysWithoutMalloc;
}

}  // namespace

void Threads::begin(std::size_t functions, bool with_events) {
  make_slot_key();
  functions_ = static_cast<std::uint32_t>(functions);
  with_events_ = with_events;
}

void Threads::release(Slot* slot) {
  for (std::uint32_t i = 0; i < kNestedCalls; ++i) slot->calls[i].start = 0;
  std::atomic_ref(slot->in_use).store(0, std::memory_order_release);
}

void Threads::shrink(Slot& slot, Log& log) {
  if (slot.capacity <= kShrunkTail) return;
  slot.capacity = kShrunkTail;
  const auto* kept = reinterpret_cast<const std::byte*>(slot.tail + kShrunkTail);
  log.give_back(slot.place + static_cast<std::uint64_t>(
                                 kept - reinterpret_cast<const std::byte*>(slot.block)),
                slot.place + slot.block->size);
}

Slot* Threads::claim_free() {
  for (std::uint32_t i = 0; i < count_; ++i)
    if (claim(slots_[i])) return &slots_[i];
  return nullptr;
}

Slot* Threads::add_slot(Log& log) {
  if (slots_ == nullptr)
    slots_ = reinterpret_cast<Slot*>(base::map_memory(kMostSlots * sizeof(Slot)));
  if (slots_ == nullptr || count_ == kMostSlots) return nullptr;
  const std::uint32_t rows = !with_events_ ? 0 : count_ < kLargeTails ? kLargeTail : kSmallTail;
  const std::size_t calls = (functions_ * sizeof(FunctionRow) + 63) / 64 * 64;
  const std::size_t tail = calls + kNestedCalls * sizeof(CallRow);
  std::uint64_t place = 0;
  BlockHeader* block = log.reserve(BlockKind::thread, tail + rows * sizeof(Event), &place);
  if (block == nullptr) return nullptr;
  block->aux0 = count_;
  block->aux1 = tail;
  block->aux2 = functions_;
  Slot& slot = slots_[count_];
  slot = {block,
          place,
          reinterpret_cast<Event*>(block->payload() + tail),
          1,
          rows,
          static_cast<std::uint8_t>(count_),
          reinterpret_cast<CallRow*>(block->payload() + calls)};
  std::atomic_ref(count_).store(count_ + 1, std::memory_order_release);
  return &slot;
}

Slot* Threads::acquire(Log& log) {
  const base::SpinLock lock(lock_);
  Slot* slot = claim_free();
  return slot != nullptr ? slot : add_slot(log);
}

Slot* detail::take_slot() {
  auto& context = detail::context;
  const Inside inside;
  context.slot = state.threads.acquire(state.log);
  if (context.slot == nullptr) return nullptr;
  context.nested = 0;
  context.calls = context.slot->calls;
  bump(process().threads);
  Sites::change_thread(*context.slot);
  if (has_slot_key) pthread_setspecific(slot_key, context.slot);
  return context.slot;
}

bool detail::prepare_thread() {
  const FirstCall measured;
  return on() && my_slot() != nullptr;
}

std::uint32_t detail::drop_abandoned_calls(std::uintptr_t frame) {
  auto& context = detail::context;
  while (context.nested != 0 && context.frames[context.nested - 1] <= frame)
    context.calls[--context.nested].start = 0;
  return context.nested;
}

}  // namespace pario::trace
