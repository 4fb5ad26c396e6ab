#include "observe/preload/mappings.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pario::preload::mappings {
namespace {

// Open addressing in a short run of entries. Removal leaves no mark, so that a search compares the
// whole run.
constexpr std::size_t kEntries = 4096;
constexpr std::size_t kRun = 8;

struct Entry {
  std::atomic<const void*> address{nullptr};
  std::atomic<trace::Record*> record{nullptr};
};

constinit Entry entries[kEntries + kRun] = {};
constinit std::atomic<std::size_t> in_use{0};

Entry* run_of(const void* address) {
  const auto page = reinterpret_cast<std::uintptr_t>(address) >> 12;
  return entries + (page * 0x9E3779B97F4A7C15ull >> 52) % kEntries;
}

Entry* entry_of(const void* address) {
  if (in_use.load(std::memory_order_relaxed) == 0 || address == nullptr) return nullptr;
  Entry* run = run_of(address);
  for (Entry* entry = run; entry < run + kRun; ++entry)
    if (entry->address.load(std::memory_order_acquire) == address) return entry;
  return nullptr;
}

}  // namespace

void add(const void* address, trace::Record* record) {
  remove(address);  // mapped over
  Entry* run = run_of(address);
  for (Entry* entry = run; entry < run + kRun; ++entry) {
    const void* none = nullptr;
    if (!entry->address.compare_exchange_strong(none, address, std::memory_order_acq_rel)) continue;
    entry->record.store(record, std::memory_order_release);
    in_use.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

trace::Record* find(const void* address) {
  const Entry* entry = entry_of(address);
  return entry == nullptr ? nullptr : entry->record.load(std::memory_order_acquire);
}

void remove(const void* address) {
  Entry* entry = entry_of(address);
  if (entry == nullptr) return;
  entry->record.store(nullptr, std::memory_order_relaxed);
  entry->address.store(nullptr, std::memory_order_release);
  in_use.fetch_sub(1, std::memory_order_relaxed);
}

void renew_records() {
  if (in_use.load(std::memory_order_relaxed) == 0) return;
  for (Entry& entry : entries)
    if (const trace::Record* parents = entry.record.load(std::memory_order_relaxed))
      entry.record.store(trace::renew(parents), std::memory_order_relaxed);
}

}  // namespace pario::preload::mappings
