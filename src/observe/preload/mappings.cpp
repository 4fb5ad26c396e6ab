#include "observe/preload/mappings.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/base/base.hpp"
#include "observe/preload/resident.hpp"

namespace pario::preload::mappings {
namespace {

constexpr std::size_t kEntries = 4096;
// The looks at resident pages take at most kInitialNs and a kShare-th of the time since the first
// mapping; one per second is made in any case.
constexpr std::uint64_t kInitialNs = 5'000'000, kShare = 100;
constexpr std::uint64_t kSecond = 1'000'000'000;

struct Entry {
  std::uintptr_t begin, end;  // end 0: unused
  trace::Record* record;
  std::uint64_t resident;  // bytes at the last look
  std::uint64_t now;       // scratch: bytes at this look
};

struct Table {
  std::uint64_t lock;
  std::size_t used;  // entries from this one on have never been used
  Entry entries[kEntries];
  std::uint64_t faults;             // major faults of the process at the last look
  std::uint64_t first, last, took;  // ns: of the first mapping, of the last look, of all looks
};
constinit Table table{};
constinit std::atomic<std::size_t> in_use{0};

std::uintptr_t word(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

Entry* find_locked(std::uintptr_t address) {
  for (std::size_t i = 0; i < table.used; ++i)
    if (table.entries[i].begin <= address && address < table.entries[i].end)
      return &table.entries[i];
  return nullptr;
}

void insert_locked(const Entry& entry) {
  std::size_t i = 0;
  while (i < table.used && table.entries[i].end != 0) ++i;
  if (i == kEntries) return;
  table.used = std::max(table.used, i + 1);
  table.entries[i] = entry;
  in_use.fetch_add(1, std::memory_order_relaxed);
}

void remove_locked(std::uintptr_t begin, std::uintptr_t end) {
  for (std::size_t i = 0; i < table.used; ++i) {
    Entry& entry = table.entries[i];
    if (entry.end == 0 || entry.end <= begin || end <= entry.begin) continue;
    const Entry whole = entry;
    entry = {};
    in_use.fetch_sub(1, std::memory_order_relaxed);
    if (whole.begin < begin) insert_locked({whole.begin, begin, whole.record, whole.resident, 0});
    if (end < whole.end) insert_locked({end, whole.end, whole.record, 0, 0});
  }
}

/// True if the resident pages may be looked at again.
bool is_due(std::uint64_t now) {
  return now - table.last >= kSecond || table.took < kInitialNs + (now - table.first) / kShare;
}

/// Divides the faults since the last look, and counts the growth of each mapping.
void count_growth() {
  const std::uint64_t faults = major_faults();
  const std::uint64_t fresh = faults - std::min(faults, table.faults);
  std::uint64_t total = 0;
  const auto growth = [](const Entry& e) { return e.now - std::min(e.now, e.resident); };
  for (std::size_t i = 0; i < table.used; ++i)
    if (table.entries[i].end != 0) total += growth(table.entries[i]);
  table.faults = faults;
  std::uint64_t before = 0;
  for (std::size_t i = 0; total != 0 && i < table.used; ++i) {
    Entry& entry = table.entries[i];
    const std::uint64_t bytes = entry.end == 0 ? 0 : growth(entry);
    entry.resident = entry.now;
    if (bytes == 0) continue;
    const auto part = [&](std::uint64_t sum) {
      return static_cast<std::uint64_t>(static_cast<unsigned __int128>(fresh) * sum / total);
    };
    trace::add(entry.record, &trace::Record::bytes_resident, bytes);
    trace::add(entry.record, &trace::Record::mapped_faults, part(before + bytes) - part(before));
    before += bytes;
  }
}

}  // namespace

bool is_empty() { return in_use.load(std::memory_order_relaxed) == 0; }

void add(const void* address, std::size_t size, trace::Record* record) {
  const base::SpinLock lock(table.lock);
  if (is_empty()) {
    table.faults = major_faults();
    if (table.first == 0) table.first = table.last = base::realtime_ns();
  }
  remove_locked(word(address), word(address) + size);  // mapped over
  if (record != nullptr) insert_locked({word(address), word(address) + size, record, 0, 0});
}

trace::Record* find(const void* address) {
  const base::SpinLock lock(table.lock);
  const Entry* entry = find_locked(word(address));
  return entry == nullptr ? nullptr : entry->record;
}

void remove(const void* address, std::size_t size) {
  const base::SpinLock lock(table.lock);
  remove_locked(word(address), word(address) + size);
}

void sample(bool last) {
  if (is_empty()) return;
  const std::uint64_t now = base::realtime_ns();
  const base::SpinLock lock(table.lock);
  if (!last && !is_due(now)) return;
  for (std::size_t i = 0; i < table.used; ++i) table.entries[i].now = 0;
  const bool complete = read_resident([](std::uintptr_t begin, std::uint64_t bytes) {
    if (Entry* entry = find_locked(begin)) entry->now += bytes;
  });
  if (complete) count_growth();
  table.last = base::realtime_ns();
  table.took += table.last - std::min(table.last, now);
}

void renew_records() {
  table.lock = 0;
  if (is_empty()) return;
  table.faults = major_faults();
  for (std::size_t i = 0; i < table.used; ++i) {
    Entry& entry = table.entries[i];
    if (entry.end != 0) entry.record = trace::renew(entry.record);
  }
}

}  // namespace pario::preload::mappings
