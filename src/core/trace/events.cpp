#define ZSTD_STATIC_LINKING_ONLY
#include "core/trace/events.hpp"

#include <zstd.h>

#include <algorithm>
#include <limits>
#include <span>

#include "core/trace/columns.hpp"
#include "core/trace/state.hpp"

namespace pario::trace {
namespace {

constexpr int kLevel = -1;  // mostly zeros: higher levels gain little and take most of the time
constexpr int kMinMatch =
    7;  // shorter matches are chance: they cost more time and bytes than the literals
constexpr std::size_t kMostRows = 8192;
constexpr std::size_t kColumns = kMostRows * sizeof(Event);
constexpr std::uint32_t kLookBack = 8;  // last rows of the tail that are searched for a like event
constexpr std::uint64_t kFirstWindow = 10'000, kLastWindow = 1'000'000'000'000;  // microseconds
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

bool alike(const Event& a, const Event& b) {
  return a.function == b.function && a.file == b.file && a.flags == b.flags;
}

std::uint64_t latest_end(std::span<const Event> events) {
  std::uint64_t end = 0;
  for (const Event& event : events) end = std::max(end, event.start + event.duration);
  return end;
}

}  // namespace

std::uint64_t merge_window_us(std::uint64_t bytes, std::uint64_t limit) {
  if (bytes >= limit) return kNever;
  std::uint64_t window = 0;
  for (std::uint64_t rest = limit - bytes, stage = limit / 2; rest <= stage; stage /= 2)
    window = window == 0 ? kFirstWindow : std::min(window * 10, kLastWindow);
  return window;
}

bool merge(Event* tail, std::uint32_t count, const Event& event, std::uint64_t window,
           std::uint64_t ticks_per_second) {
  for (std::uint32_t back = 1; back <= std::min(count, kLookBack); ++back) {
    Event& into = tail[count - back];
    if (!alike(into, event) || event.start - into.start > window) continue;
    const double microseconds = static_cast<double>(event.start + event.duration - into.start) *
                                1e6 / static_cast<double>(ticks_per_second);
    into.duration += event.duration;
    into.length += event.length;
    into.span = static_cast<std::uint32_t>(std::min(microseconds, 4294967295.0));
    into.count += event.count;
    return true;
  }
  return false;
}

struct EventWriter::Workspace {
  ZSTD_CCtx* compressor;
  std::byte columns[kColumns];
  alignas(kPage) std::byte block[whole_pages(sizeof(BlockHeader) + ZSTD_COMPRESSBOUND(kColumns))];
};

void EventWriter::store_slowly(Slot& slot, Event event) {
  const std::uint64_t window = std::atomic_ref(window_).load(std::memory_order_relaxed);
  if (window == kNever) return bump(process().events_lost);
  if (window != 0 && merge(slot.tail, slot.block->count, event, window, tick_rate()))
    return bump(process().events_merged);
  if (slot.block->count == slot.capacity) flush(slot);
  append(slot, event);
}

/// Locks one of the few workspaces for compression.
int EventWriter::lock_workspace() {
  int at = 0;
  while (std::atomic_ref(locks_[at]).exchange(1, std::memory_order_acquire) != 0) {
    at = (at + 1) % kWorkspaces;
    if (at == 0) sched_yield();
  }
  return at;
}

/// Returns the memory of a workspace, mapped at first use; null without memory.
EventWriter::Workspace* EventWriter::workspace(int at) {
  if (workspaces_[at] != nullptr) return workspaces_[at];
  const std::size_t size = ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(kLevel, kColumns, 0));
  std::byte* memory = base::map_memory(sizeof(Workspace) + size);
  if (memory == nullptr) return nullptr;
  workspaces_[at] = reinterpret_cast<Workspace*>(memory);
  ZSTD_CCtx* compressor = ZSTD_initStaticCCtx(memory + sizeof(Workspace), size);
  ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(compressor, ZSTD_c_minMatch, kMinMatch);
  // Readers need the size of a chunk's contents; a static context omits it.
  ZSTD_CCtx_setParameter(compressor, ZSTD_c_contentSizeFlag, 1);
  workspaces_[at]->compressor = compressor;
  return workspaces_[at];
}

void EventWriter::flush(Slot& slot) {
  if (slot.block->count == 0) return;
  const Inside inside;
  const std::uint64_t start = ticks();
  const int at = lock_workspace();
  if (Workspace* space = workspace(at); space == nullptr || !write_chunk(*space, slot))
    bump(process().events_lost, slot.block->count);
  std::atomic_ref(locks_[at]).store(0, std::memory_order_release);
  std::atomic_ref(slot.block->count).store(0, std::memory_order_release);
  bump(process().tracer_time, ticks() - start);
  refresh_anchor();
}

bool EventWriter::write_chunk(Workspace& workspace, const Slot& slot) {
  const std::span<const Event> events(slot.tail, slot.block->count);
  encode_columns(events, workspace.columns);
  auto* header = new (workspace.block) BlockHeader{};
  const std::size_t size =
      ZSTD_compress2(workspace.compressor, header->payload(), ZSTD_COMPRESSBOUND(kColumns),
                     workspace.columns, events.size_bytes());
  header->kind = BlockKind::events;
  header->used = size;
  header->count = slot.block->count;
  header->aux0 = events.size_bytes();
  header->aux1 = events.front().start;
  header->aux2 = latest_end(events);
  if (ZSTD_isError(size) != 0 || state.log.append(header) != 0) return false;
  bump(process().events, header->count);
  coarsen(
      std::atomic_ref(process().event_bytes).fetch_add(header->size, std::memory_order_relaxed) +
      header->size);
  return true;
}

void EventWriter::coarsen(std::uint64_t bytes) {
  const std::uint64_t window = merge_window_us(bytes, limit_);
  if (window == 0) return;
  const auto ticks_per_us = static_cast<double>(tick_rate()) / 1e6;
  std::atomic_ref(window_).store(
      window == kNever ? kNever
                       : static_cast<std::uint64_t>(static_cast<double>(window) * ticks_per_us),
      std::memory_order_relaxed);
}

}  // namespace pario::trace
