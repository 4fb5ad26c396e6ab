// The open files of descriptors: a table from descriptor numbers to open descriptions, like that of
// the kernel. dup shares a description; fork does, too, and makes its offset unknown.
//
// The tables are lock-free, for signal handlers and for forks of processes with threads. Their
// memory is reserved, and used only when needed.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "core/base/base.hpp"
#include "core/trace/trace.hpp"

namespace pario::preload {

/// The uncounted one-character calls of a stream; see characters.hpp.
struct CharacterRun {
  std::atomic<char*> mark{nullptr};  ///< the buffer pointer up to which calls are counted; null: no
                                     ///< such calls so far
  std::atomic<std::uint16_t> symbol{0};
  std::atomic<bool> writing{false};
  std::atomic<std::uint32_t> sampled_calls{0};
  std::atomic<std::uint32_t> sampled_ticks{0};
};

/// Adds and returns the previous value; cheaper in a process with one thread.
inline std::uint64_t advance(std::atomic<std::uint64_t>& value, std::uint64_t by) {
  if (!base::single_threaded()) return value.fetch_add(by, std::memory_order_relaxed);
  const std::uint64_t before = value.load(std::memory_order_relaxed);
  value.store(before + by, std::memory_order_relaxed);
  return before;
}

/// An open description. One cache line, because a call loads others, too.
struct alignas(64) Description {
  /// Rows of posix and stdio; null until the first call of that layer.
  std::atomic<trace::Record*> records[2];
  std::atomic<std::uint64_t> offset;      ///< of the next read or write; invalid if `shared`
  std::atomic<std::uint64_t> position;    ///< of its stream, as the program sees it
  std::atomic<std::uint32_t> references;  ///< number of descriptors
  std::atomic<int> open_flags;
  [[no_unique_address]] CharacterRun characters;
  std::atomic<bool> shared;       ///< calls that are not wrapped move the offset: ask the kernel
  std::atomic<bool> buffer_seen;  ///< the stream's buffer is in its record
};
static_assert(sizeof(Description) == 64);

namespace descriptors {

/// The state of a descriptor number, or the index of its description. A `kUnknown` number is
/// classified at its first use: it was open before exec, or opened by a call that is not wrapped. A
/// `kIgnored` number is no file, or a file that is not traced. A negative slot is unknown, too, and
/// description -slot is reserved for the number's next file, because most programs use few numbers
/// again and again.
enum Slot : std::int32_t { kUnknown, kIgnored, kFirst };

inline constexpr int kCapacity = 1 << 20;
extern std::atomic<std::int32_t> slots[kCapacity];
extern Description pool[];

/// Queries the kernel about an unknown descriptor and enters it with a row in `layer`. Null: not
/// traced.
Description* classify(int descriptor, trace::Layer layer);

/// The description of a descriptor; null when its calls are not counted.
inline Description* find(int descriptor, trace::Layer layer = trace::Layer::posix) {
  if (static_cast<unsigned>(descriptor) >= kCapacity) return nullptr;
  const std::int32_t slot = slots[descriptor].load(std::memory_order_acquire);
  if (slot >= kFirst) [[likely]]
    return &pool[slot];
  return slot == kIgnored ? nullptr : classify(descriptor, layer);
}

/// The same inside the tracer, where find() does not classify unknown descriptors.
Description* find_inside(int descriptor);

/// Finds a description without querying the kernel: null for unknown descriptors, too.
inline Description* find_known(int descriptor) {
  if (static_cast<unsigned>(descriptor) >= kCapacity) return nullptr;
  const std::int32_t slot = slots[descriptor].load(std::memory_order_acquire);
  return slot >= kFirst ? &pool[slot] : nullptr;
}

/// Enters a new description for a descriptor that has just been opened. `record` may be null: the
/// file is not traced.
Description* attach(int descriptor, trace::Layer layer, trace::Record* record, int open_flags);
/// Does the same if the number's last file had this path, and returns its row; null: it had not. A
/// program that opens a file again and again gets the same number.
trace::Record* attach_again(int descriptor, trace::Layer layer, std::string_view path,
                            int open_flags);
/// Makes `copy` a descriptor of the description of `original`.
void share(int original, int copy);
/// Removes a descriptor: it is closed, or its file is unknown.
void forget(int descriptor);
/// Removes all descriptors from `first` to `last`, and counts their closing.
void forget_range(unsigned first, unsigned last);
/// Called around a fork, in both processes: marks all offsets as moved by another process, too.
void share_all();
/// Called in the child of a fork: replaces the records by those of its own log.
void renew_records();

}  // namespace descriptors

/// Creates the row of a file in a layer in which it has none, with the facts of the other row.
trace::Record* make_record(Description& file, trace::Layer layer);
/// The row of a file in one layer; created at the first call of that layer.
inline trace::Record* record_of(Description& file, trace::Layer layer) {
  trace::Record* record = file.records[static_cast<int>(layer)].load(std::memory_order_acquire);
  return record != nullptr ? record : make_record(file, layer);
}
/// The number of a file's row in one layer, else in the other; kNoFile before the first call.
inline std::uint32_t row_of(const Description& file, trace::Layer layer) {
  const int first = static_cast<int>(layer);
  const trace::Record* record = file.records[first].load(std::memory_order_acquire);
  if (record == nullptr) [[unlikely]]
    record = file.records[1 - first].load(std::memory_order_acquire);
  return record == nullptr ? trace::kNoFile : static_cast<std::uint32_t>(record->row);
}
/// The row of a path, which ends with a zero; null: it is not traced. `descriptor`: the open file,
/// or -1.
trace::Record* record_of(trace::Layer layer, std::string_view path, int descriptor);
/// The row of a name relative to `directory`, which ends with a zero; null also if the name cannot
/// be resolved.
trace::Record* record_of(trace::Layer layer, int directory, std::string_view name, int descriptor);

}  // namespace pario::preload
