#include "core/trace/records.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/trace/facts.hpp"
#include "core/trace/state.hpp"

namespace pario::trace {
namespace {

constexpr std::size_t kFirstRows = 16, kMostRecords = 4096;
constexpr std::size_t kFirstStringsBlock = 16 << 10, kStringsBlock = 64 << 10;
constexpr std::size_t kFirstEntries = 1024;
constexpr std::size_t kMostHashes = std::size_t{1} << 22;
constexpr Layer kLayers[] = {
#define PARIO_LAYER(name) Layer::name,
#include "core/trace/calls.def"
};
static_assert(std::size(kLayers) == kLayerCount);

/// Mixes the layer into a hash: each layer has rows of its own.
std::uint64_t entry_hash(Layer layer, std::uint64_t path_hash) {
  return path_hash + static_cast<std::uint64_t>(layer) * 0x9E3779B97F4A7C15;
}

std::string_view directory_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == path.npos ? std::string_view{} : path.substr(0, slash);
}

}  // namespace

bool HashSet::grow() {
  const std::size_t size = slots_ == nullptr ? 4096 : 2 * (mask_ + 1);
  if (size > kMostHashes) return false;
  auto* slots = reinterpret_cast<std::uint64_t*>(base::map_memory(size * sizeof(std::uint64_t)));
  if (slots == nullptr) return false;
  for (std::size_t i = 0; slots_ != nullptr && i <= mask_; ++i) {
    if (slots_[i] == 0) continue;
    std::size_t at = slots_[i] & (size - 1);
    while (slots[at] != 0) at = (at + 1) & (size - 1);
    slots[at] = slots_[i];
  }
  if (slots_ != nullptr) base::unmap(slots_, (mask_ + 1) * sizeof(std::uint64_t));
  slots_ = slots;
  mask_ = size - 1;
  return true;
}

bool HashSet::insert(std::uint64_t hash) {
  hash += hash == 0;
  if (2 * used_ >= mask_ && !grow() && 4 * used_ >= 3 * mask_) return false;
  std::size_t at = hash & mask_;
  for (; slots_[at] != 0; at = (at + 1) & mask_)
    if (slots_[at] == hash) return false;
  slots_[at] = hash;
  ++used_;
  return true;
}

bool Records::begin(Log& log, std::uint64_t files_limit) {
  files_limit_ = files_limit;
  for (const Layer layer : kLayers)
    if ((fallback_[static_cast<int>(layer)] = insert(log, layer, "*", hash_name("*"), {}, true)) ==
        nullptr)
      return false;
  return true;
}

Record* Records::find(Layer layer, std::string_view path, std::uint64_t hash) const {
  const Table* table = std::atomic_ref(const_cast<Table*&>(table_)).load(std::memory_order_acquire);
  if (table == nullptr) return nullptr;
  const std::uint64_t wanted = entry_hash(layer, hash);
  for (std::size_t at = wanted & table->mask;; at = (at + 1) & table->mask) {
    auto& entry = const_cast<Entry&>(table->entries[at]);
    Record* row = std::atomic_ref(entry.record).load(std::memory_order_acquire);
    if (row == nullptr) return nullptr;
    if (entry.hash == wanted && row->layer == static_cast<std::uint64_t>(layer) &&
        path_of(row) == path)
      return row;
  }
}

bool Records::known_in_any_layer(std::string_view path, std::uint64_t hash) const {
  return std::any_of(std::begin(kLayers), std::end(kLayers),
                     [&](Layer layer) { return find(layer, path, hash) != nullptr; });
}

bool Records::is_over_limit(std::string_view path, std::uint64_t hash) {
  return std::atomic_ref(paths_).load(std::memory_order_relaxed) >= files_limit_ &&
         !known_in_any_layer(path, hash);
}

Record* Records::get(Log& log, Layer layer, std::string_view path, Facts facts, void* context) {
  const std::uint64_t hash = hash_name(path);
  if (Record* row = find(layer, path, hash)) return row;
  if (is_over_limit(path, hash)) return fold(log, layer, path, hash, facts, context);
  const FileFacts known = facts != nullptr ? facts(context) : FileFacts{};
  Record* row = insert_locked(log, layer, path, hash, known, false);
  if (row == nullptr) row = fallback_[static_cast<int>(layer)];
  write_layout_note(*row, known.layout);
  discard(known.layout);
  return row;
}

/// Returns the row of a file's directory, for files beyond the limit; with too many directories,
/// the row for all.
Record* Records::fold(Log& log, Layer layer, std::string_view path, std::uint64_t hash, Facts facts,
                      void* context) {
  note_folded(hash);
  base::Text<kPage> all_files;
  const std::string_view name = all_files.add(directory_of(path)).add("/*").view();
  const std::uint64_t name_hash = hash_name(name);
  if (Record* row = find(layer, name, name_hash)) return row;
  Record* const fallback = fallback_[static_cast<int>(layer)];
  if (std::atomic_ref(directories_).fetch_add(1, std::memory_order_relaxed) >= files_limit_)
    return fallback;
  const FileFacts known = facts != nullptr ? facts(context) : FileFacts{};
  discard(known.layout);
  const FileFacts shared{
      .device = known.device, .block_size = known.block_size, .filesystem = known.filesystem};
  Record* row = insert_locked(log, layer, name, name_hash, shared, true);
  return row != nullptr ? row : fallback;
}

void Records::note_folded(std::uint64_t hash) {
  const Inside inside;
  const base::SpinLock lock(lock_);
  if (folded_.insert(hash)) ++process().files_folded;
}

Record* Records::adopt(Log& log, const Record& parents) {
  const FileFacts facts{parents.kind,
                        parents.device,
                        parents.inode,
                        parents.block_size,
                        parents.size_at_open,
                        parents.filesystem,
                        {}};
  const auto layer = static_cast<Layer>(parents.layer);
  Record* row =
      insert_locked(log, layer, path_of(&parents), parents.path_hash, facts, parents.folded != 0);
  return row != nullptr ? row : fallback_[static_cast<int>(layer)];
}

Record* Records::insert_locked(Log& log, Layer layer, std::string_view path, std::uint64_t hash,
                               const FileFacts& facts, bool folded) {
  const Inside inside;
  const base::SpinLock lock(lock_);
  if (Record* row = find(layer, path, hash)) return row;
  return insert(log, layer, path, hash, facts, folded);
}

Record* Records::new_row(Log& log) {
  if (block_ == nullptr || (block_->count + 1) * sizeof(Record) > block_->capacity()) {
    const std::size_t rows = std::clamp(static_cast<std::size_t>(rows_), kFirstRows, kMostRecords);
    BlockHeader* block = log.reserve(BlockKind::records, rows * sizeof(Record));
    if (block == nullptr) return nullptr;
    block_ = block;
  }
  return reinterpret_cast<Record*>(block_->payload()) + block_->count;
}

bool Records::write_path(Log& log, std::string_view path, Record& row) {
  const auto length = static_cast<std::uint32_t>(path.size());
  const std::size_t needed = sizeof length + length;
  if (strings_ == nullptr || strings_->capacity() - strings_->used < needed) {
    const std::size_t size = strings_ == nullptr ? kFirstStringsBlock : kStringsBlock;
    BlockHeader* block =
        log.reserve(BlockKind::strings, std::max(needed, size - sizeof(BlockHeader)));
    if (block == nullptr) return false;
    strings_ = block;
  }
  std::byte* at = strings_->payload() + strings_->used;
  std::memcpy(at, &length, sizeof length);
  std::memcpy(at + sizeof length, path.data(), length);
  row.path = std::uint64_t{strings_->index} << 32 | strings_->used;
  row.path_text = reinterpret_cast<std::uint64_t>(at);
  strings_->used += needed;
  ++strings_->count;
  return true;
}

/// Grows the table so that it is at most half full. Readers may still use the old one, so its
/// memory stays mapped.
bool Records::grow_table() {
  if (table_ != nullptr && 2 * rows_ <= table_->mask) return true;
  const std::size_t size = table_ == nullptr ? kFirstEntries : 2 * (table_->mask + 1);
  auto* bigger = reinterpret_cast<Table*>(base::map_memory(sizeof(Table) + size * sizeof(Entry)));
  if (bigger == nullptr) return table_ != nullptr && rows_ < table_->mask;
  bigger->mask = size - 1;
  for (std::size_t i = 0; table_ != nullptr && i <= table_->mask; ++i)
    if (table_->entries[i].record != nullptr)
      enter(*bigger, table_->entries[i].hash, table_->entries[i].record);
  std::atomic_ref(table_).store(bigger, std::memory_order_release);
  return true;
}

void Records::enter(Table& table, std::uint64_t hash, Record* row) {
  std::size_t at = hash & table.mask;
  while (table.entries[at].record != nullptr) at = (at + 1) & table.mask;
  table.entries[at].hash = hash;
  std::atomic_ref(table.entries[at].record).store(row, std::memory_order_release);
}

Record* Records::insert(Log& log, Layer layer, std::string_view path, std::uint64_t hash,
                        const FileFacts& facts, bool folded) {
  Record* row = grow_table() ? new_row(log) : nullptr;
  if (row == nullptr || !write_path(log, path, *row)) return nullptr;
  if (!folded && !known_in_any_layer(path, hash))
    std::atomic_ref(paths_).store(paths_ + 1, std::memory_order_relaxed);
  row->path_hash = hash;
  row->layer = static_cast<std::uint64_t>(layer);
  row->folded = folded;
  set_facts(*row, facts);
  row->row = rows_++;
  process().records = rows_;
  std::atomic_ref(block_->count).store(block_->count + 1, std::memory_order_release);
  std::atomic_ref(block_->used).store(block_->count * sizeof(Record), std::memory_order_release);
  enter(*table_, entry_hash(layer, hash), row);
  return row;
}

void Records::set_facts(Record& row, const FileFacts& facts) {
  row.device = facts.device;
  row.inode = facts.inode;
  row.filesystem = facts.filesystem;
  row.block_size = facts.block_size;
  row.size_at_open = facts.size;
  std::atomic_ref(row.kind).store(facts.kind, std::memory_order_release);
}

bool Records::complete(Record& row, const FileFacts& facts) {
  const Inside inside;
  const base::SpinLock lock(lock_);
  const bool bare = row.kind == 0;
  if (bare) set_facts(row, facts);
  return bare;
}

void complete(Record& record, const FileFacts& facts) {
  if (on() && state.records.complete(record, facts)) write_layout_note(record, facts.layout);
  discard(facts.layout);
}

Record* find_record(Layer layer, std::string_view path, FileFacts (*facts)(void*), void* context) {
  return on() ? state.records.get(state.log, layer, path, facts, context) : nullptr;
}

Record* known_record(Layer layer, std::string_view path) {
  return on() ? state.records.find_existing(layer, path) : nullptr;
}

Record* renew(const Record* parents) {
  return on() && parents != nullptr ? state.records.adopt(state.log, *parents) : nullptr;
}

}  // namespace pario::trace
