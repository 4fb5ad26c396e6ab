#include "observe/preload/descriptions.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "core/base/base.hpp"
#include "observe/preload/settings.hpp"

namespace pario::preload {

using trace::Layer;
using trace::Record;

namespace {

trace::FileFacts facts_of_descriptor(void* descriptor) {
  return trace::facts_of(*static_cast<int*>(descriptor));
}

}  // namespace

namespace descriptors {
namespace {

constexpr std::uint32_t kPoolSize = 1 << 16;

// The free list: index of the first free description in the low half, a version in the high half
// against the ABA problem.
constinit std::atomic<std::uint64_t> free_list{0};
constinit std::atomic<std::uint32_t> next_free[kPoolSize] = {};
constinit std::atomic<std::uint32_t> used{kFirst};  // descriptions ever used
constinit std::atomic<int> highest{-1};             // largest descriptor ever entered

std::uint32_t pop_free() {
  std::uint64_t head = free_list.load(std::memory_order_acquire);
  while (static_cast<std::uint32_t>(head) != 0) {
    const std::uint32_t next =
        next_free[static_cast<std::uint32_t>(head)].load(std::memory_order_relaxed);
    if (free_list.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | next,
                                        std::memory_order_acq_rel))
      return static_cast<std::uint32_t>(head);
  }
  return 0;
}

/// Index of an unused description, or 0.
std::uint32_t allocate() {
  if (const std::uint32_t index = pop_free()) return index;
  if (used.load(std::memory_order_relaxed) >= kPoolSize) return 0;
  const std::uint32_t index = used.fetch_add(1, std::memory_order_relaxed);
  return index < kPoolSize ? index : 0;
}

void report_full() {
  static constinit std::atomic<bool> reported{false};
  if (!reported.exchange(true))
    trace::message(
        "more than 65,000 files are open at a time: calls on further files are not counted");
}

void push_free(std::uint32_t index) {
  std::uint64_t head = free_list.load(std::memory_order_relaxed);
  do next_free[index].store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
  while (!free_list.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | index,
                                          std::memory_order_acq_rel));
}

void release(std::int32_t slot) {
  if (slot < 0 ||
      (slot >= kFirst && pool[slot].references.fetch_sub(1, std::memory_order_acq_rel) == 1))
    push_free(static_cast<std::uint32_t>(slot < 0 ? -slot : slot));
}

void enter(int descriptor, std::int32_t slot) {
  if (static_cast<unsigned>(descriptor) >= kCapacity) return release(slot);
  int old = highest.load(std::memory_order_relaxed);
  while (old < descriptor &&
         !highest.compare_exchange_weak(old, descriptor, std::memory_order_relaxed)) {
  }
  release(slots[descriptor].exchange(slot, std::memory_order_acq_rel));
}

/// Claims the description that is reserved for the number's next file. 0: none.
std::uint32_t claim_reserved(int descriptor) {
  if (static_cast<unsigned>(descriptor) >= kCapacity) return 0;
  const std::int32_t slot = slots[descriptor].load(std::memory_order_acquire);
  const bool claimed =
      slot < 0 && base::replace_if<std::int32_t>(slots[descriptor], slot, kUnknown);
  return claimed ? static_cast<std::uint32_t>(-slot) : 0;
}

/// Reserves the description for the number's next file, if no other number uses it.
bool reserve(int descriptor) {
  const std::int32_t slot = slots[descriptor].load(std::memory_order_acquire);
  if (slot < kFirst || pool[slot].references.load(std::memory_order_acquire) != 1) return false;
  if (!base::replace_if<std::int32_t>(slots[descriptor], slot, -slot)) return false;
  pool[slot].references.store(0, std::memory_order_relaxed);
  return true;
}

void clear(Description& file, int open_flags) {
  file.records[0].store(nullptr, std::memory_order_relaxed);
  file.records[1].store(nullptr, std::memory_order_relaxed);
  file.offset.store(0, std::memory_order_relaxed);
  file.position.store(0, std::memory_order_relaxed);
  file.references.store(1, std::memory_order_relaxed);
  file.open_flags.store(open_flags, std::memory_order_relaxed);
  file.shared.store(false, std::memory_order_relaxed);
  file.buffer_seen.store(false, std::memory_order_relaxed);
  file.characters.mark.store(nullptr, std::memory_order_relaxed);
  file.characters.sampled_calls.store(0, std::memory_order_relaxed);
  file.characters.sampled_ticks.store(0, std::memory_order_relaxed);
}

/// The row of a standard stream that is no file: a terminal, a pipe, a socket.
Record* stream_record(Layer layer, int descriptor) {
  static constexpr std::string_view kNames[] = {"<stdin>", "<stdout>", "<stderr>"};
  return descriptor > 2
             ? nullptr
             : trace::find_record(layer, kNames[descriptor], facts_of_descriptor, &descriptor);
}

Record* record_of_descriptor(Layer layer, int descriptor) {
  struct stat status;
  if (base::status_of(descriptor, status) < 0) return nullptr;
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return stream_record(layer, descriptor);
  base::Path path(descriptor);
  return path.is_known() ? record_of(layer, path.view(), descriptor) : nullptr;
}

}  // namespace

constinit std::atomic<std::int32_t> slots[kCapacity] = {};
constinit Description pool[kPoolSize] = {};

namespace {

Description* classify_inside(int descriptor, Layer layer) {
  const long flags = base::system_call(SYS_fcntl, descriptor, F_GETFL);
  if (flags < 0) return nullptr;  // not open
  Description* file =
      attach(descriptor, layer, record_of_descriptor(layer, descriptor), static_cast<int>(flags));
  const long offset = file == nullptr ? -1 : base::system_call(SYS_lseek, descriptor, 0, SEEK_CUR);
  if (offset < 0) return file;  // not traced, or a pipe, whose offsets begin here
  file->position.store(static_cast<std::uint64_t>(offset), std::memory_order_relaxed);
  file->shared.store(true, std::memory_order_relaxed);
  return file;
}

}  // namespace

Description* classify(int descriptor, Layer layer) {
  const trace::Guard guard;
  return guard.outermost() ? classify_inside(descriptor, layer) : nullptr;
}

Description* find_inside(int descriptor) {
  if (static_cast<unsigned>(descriptor) >= kCapacity) return nullptr;
  if (Description* file = find_known(descriptor)) return file;
  const bool is_ignored = slots[descriptor].load(std::memory_order_acquire) == kIgnored;
  return is_ignored ? nullptr : classify_inside(descriptor, Layer::posix);
}

Description* attach(int descriptor, Layer layer, Record* record, int open_flags) {
  if (record == nullptr) return enter(descriptor, kIgnored), nullptr;
  const std::uint32_t reserved = claim_reserved(descriptor);
  const std::uint32_t index = reserved != 0 ? reserved : allocate();
  if (index == 0) return report_full(), enter(descriptor, kIgnored), nullptr;
  clear(pool[index], open_flags);
  pool[index].records[static_cast<int>(layer)].store(record, std::memory_order_relaxed);
  if (reserved != 0)
    slots[descriptor].store(static_cast<std::int32_t>(index), std::memory_order_release);
  else
    enter(descriptor, static_cast<std::int32_t>(index));
  return &pool[index];
}

Record* attach_again(int descriptor, Layer layer, std::string_view path, int open_flags) {
  if (static_cast<unsigned>(descriptor) >= kCapacity) return nullptr;
  const std::int32_t slot = slots[descriptor].load(std::memory_order_acquire);
  if (slot >= 0) return nullptr;
  Description& file = pool[-slot];
  Record* last = file.records[static_cast<int>(layer)].load(std::memory_order_relaxed);
  if (last == nullptr || trace::path_of(last) != path || trace::is_bare(*last)) return nullptr;
  if (!base::replace_if<std::int32_t>(slots[descriptor], slot, kUnknown)) return nullptr;
  clear(file, open_flags);
  file.records[static_cast<int>(layer)].store(last, std::memory_order_relaxed);
  slots[descriptor].store(-slot, std::memory_order_release);
  return last;
}

void share(int original, int copy) {
  if (original == copy || static_cast<unsigned>(original) >= kCapacity) return;
  const std::int32_t slot = slots[original].load(std::memory_order_acquire);
  if (slot >= kFirst) pool[slot].references.fetch_add(1, std::memory_order_relaxed);
  enter(copy, std::max<std::int32_t>(slot, kUnknown));
}

void forget(int descriptor) {
  if (static_cast<unsigned>(descriptor) >= kCapacity || reserve(descriptor)) return;
  if (slots[descriptor].load(std::memory_order_relaxed) < kIgnored) return;  // unknown
  release(slots[descriptor].exchange(kUnknown, std::memory_order_acq_rel));
}

void forget_range(unsigned first, unsigned last) {
  const int end = highest.load(std::memory_order_relaxed);
  if (end < 0) return;
  last = std::min(last, static_cast<unsigned>(end));
  for (unsigned descriptor = first; descriptor <= last; ++descriptor) {
    if (Description* file = find_known(static_cast<int>(descriptor)))
      trace::add(record_of(*file, Layer::posix), &Record::closes, 1);
    forget(static_cast<int>(descriptor));
  }
}

namespace {

template <class Action>
void for_each_used(Action action) {
  const std::uint32_t end = std::min(used.load(std::memory_order_acquire), kPoolSize);
  for (std::uint32_t index = kFirst; index < end; ++index) action(pool[index]);
}

}  // namespace

void share_all() {
  for_each_used([](Description& file) { file.shared.store(true, std::memory_order_relaxed); });
}

void renew_records() {
  for_each_used([](Description& file) {
    // The parent counts the pending runs.
    file.characters.mark.store(nullptr, std::memory_order_relaxed);
    const bool is_open = file.references.load(std::memory_order_relaxed) != 0;
    for (auto& record : file.records)
      if (const Record* parents = record.load(std::memory_order_relaxed))
        record.store(is_open ? trace::renew(parents) : nullptr, std::memory_order_relaxed);
  });
}

}  // namespace descriptors

namespace {

trace::FileFacts facts_in(const Record& record) {
  return {record.kind,
          record.device,
          record.inode,
          record.block_size,
          record.size_at_open,
          record.filesystem,
          {}};
}

trace::FileFacts facts_of_path(void* path) {
  return trace::facts_of(static_cast<const char*>(path));
}

/// The existing row of a path. A row that was created before the file existed gets the facts of the
/// open file.
Record* known_record(Layer layer, std::string_view path, int descriptor) {
  Record* known = trace::known_record(layer, path);
  if (known != nullptr && descriptor >= 0 && trace::is_bare(*known))
    trace::complete(*known, trace::facts_of(descriptor));
  return known;
}

}  // namespace

Record* make_record(Description& file, Layer layer) {
  const int index = static_cast<int>(layer);
  const Record* known = file.records[1 - index].load(std::memory_order_acquire);
  if (known == nullptr) return nullptr;
  const auto same_facts = [](void* other) { return facts_in(*static_cast<const Record*>(other)); };
  Record* record =
      trace::find_record(layer, trace::path_of(known), same_facts, const_cast<Record*>(known));
  file.records[index].store(record, std::memory_order_release);
  return record;
}

Record* record_of(Layer layer, int directory, std::string_view name, int descriptor) {
  // Rows have normal names: a name that has a row needs no resolution.
  if (name.starts_with('/'))
    if (Record* known = known_record(layer, name, descriptor)) return known;
  const char* const text = name.data();  // the program's name, which ends with zero
  const base::Path path(directory, text);
  return path.is_known() ? record_of(layer, path.view(), descriptor) : nullptr;
}

Record* record_of(Layer layer, std::string_view path, int descriptor) {
  if (Record* known = known_record(layer, path, descriptor))
    return known;  // most paths: they are not excluded
  if (settings::is_excluded(path)) return nullptr;
  if (descriptor >= 0) return trace::find_record(layer, path, facts_of_descriptor, &descriptor);
  return trace::find_record(layer, path, facts_of_path, const_cast<char*>(path.data()));
}

}  // namespace pario::preload
