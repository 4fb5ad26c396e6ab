// What descriptors stand for: a table from descriptor numbers to open descriptions, as the kernel has one. dup shares a description; so
// does fork, and then nobody here knows its offset any more.
//
// Everything is lock-free, for signal handlers and for forks of processes with threads; memory is reserved, not touched, until needed.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/base.hpp"
#include "trace/trace.hpp"

namespace pario::preload {

/// The one-character calls of a stream that are not counted yet; see characters.hpp.
struct CharacterRun {
  std::atomic<char*> mark{nullptr};  ///< where the stream's buffer pointer stood when all before was counted; null: no such calls so far
  std::atomic<std::uint16_t> symbol{0};
  std::atomic<bool> writing{false};
  std::atomic<std::uint32_t> sampled_calls{0};
  std::atomic<std::uint32_t> sampled_ticks{0};
};

/// Adds, and returns what was before; cheaper where nobody else can be adding.
inline std::uint64_t advance(std::atomic<std::uint64_t>& value, std::uint64_t by) {
  if (!base::single_threaded()) return value.fetch_add(by, std::memory_order_relaxed);
  const std::uint64_t before = value.load(std::memory_order_relaxed);
  value.store(before + by, std::memory_order_relaxed);
  return before;
}

/// One line of the processor's cache: a call has others to fetch.
struct alignas(64) Description {
  std::atomic<trace::Record*> records[2];  ///< posix and stdio; null until a call of that layer is seen
  std::atomic<std::uint64_t> offset;       ///< of the descriptor, as its next read or write will use it; meaningless where `shared`
  std::atomic<std::uint64_t> position;     ///< of the stream on it, as the program sees it
  std::atomic<std::uint32_t> references;   ///< descriptors that stand for it
  std::atomic<int> open_flags;
  [[no_unique_address]] CharacterRun characters;
  std::atomic<bool> shared;       ///< the offset moves without us: ask the kernel
  std::atomic<bool> buffer_seen;  ///< the stream's buffer is in its record
};
static_assert(sizeof(Description) == 64);

namespace descriptors {

/// What a number stands for. `kUnknown` is asked for at first use (descriptors from before exec, or that came by other ways than the
/// wrappers); `kIgnored` are no files, or files that are not traced. Below zero: unknown, too, and description -slot waits for the
/// number's next file, for most are opened and closed under few numbers again and again.
enum Slot : std::int32_t { kUnknown, kIgnored, kFirst };

inline constexpr int kCapacity = 1 << 20;
extern std::atomic<std::int32_t> slots[kCapacity];
extern Description pool[];

/// Finds out what an unknown descriptor is, and enters it with a row in `layer`. Null: not traced.
Description* classify(int descriptor, trace::Layer layer);

/// The description of a descriptor; null when its calls are not counted.
inline Description* find(int descriptor, trace::Layer layer = trace::Layer::posix) {
  if (static_cast<unsigned>(descriptor) >= kCapacity) return nullptr;
  const std::int32_t slot = slots[descriptor].load(std::memory_order_acquire);
  if (slot >= kFirst) [[likely]]
    return &pool[slot];
  return slot == kIgnored ? nullptr : classify(descriptor, layer);
}

/// The same without asking the kernel: null for unknown ones, too.
Description* find_known(int descriptor);

/// Enters a new description for a descriptor that has just been opened. `record` may be null: the file is not traced.
Description* attach(int descriptor, trace::Layer layer, trace::Record* record, int open_flags);
/// `copy` stands from now on for what `original` stands for.
void share(int original, int copy);
/// The descriptor is closed, or stands for something unknown.
void forget(int descriptor);
/// All descriptors from `first` to `last` are closed; counts their closes.
void forget_range(unsigned first, unsigned last);
/// After a fork, on both sides: another process moves the offsets, too.
void share_all();
/// In the child of a fork: the records of its own log.
void renew_records();

}  // namespace descriptors

/// Makes the row of a file in a layer in which it has none yet, with the facts of the other layer's.
trace::Record* make_record(Description& file, trace::Layer layer);
/// The row of a file in one layer; made at the first call of that layer.
inline trace::Record* record_of(Description& file, trace::Layer layer) {
  trace::Record* record = file.records[static_cast<int>(layer)].load(std::memory_order_acquire);
  return record != nullptr ? record : make_record(file, layer);
}
/// The row of a path (terminated by zero); null when the path is not traced. `descriptor`: the open file, or -1.
trace::Record* record_of(trace::Layer layer, std::string_view path, int descriptor);
/// The row of a file as a call on `directory` names it; null also when the name cannot be resolved.
trace::Record* record_of(trace::Layer layer, int directory, const char* name, int descriptor);

}  // namespace pario::preload
