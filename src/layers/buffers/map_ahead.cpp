#include "layers/buffers/map_ahead.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <mutex>
#include <new>
#include <string_view>

#include "layers/buffers/background.hpp"
#include "layers/buffers/node_memory.hpp"
#include "layers/buffers/system_calls.hpp"

namespace pario::buffers::map_ahead {
namespace {

constexpr std::uint64_t kLeastRange = 1 << 20;
constexpr std::uint64_t kPartBytes = 8 << 20;    // of one reader at a time
constexpr std::uint64_t kCallBytes = 1 << 20;    // of a part, in one system call
constexpr std::uint64_t kLeastFreePercent = 10;  // of the memory
constexpr std::uint64_t kReaderLock = 0;         // held by the process that reads
constexpr long kPauseNs = 100'000'000;
constexpr int kLowestDescriptor = 1000;  // above those that programs use

struct Mapping {
  std::atomic<const void*> address{nullptr};  ///< null: not in use, or to be stopped
  std::atomic<int> threads{0};
  std::atomic<std::uint64_t> next{0};  ///< part of the file
  base::Extent range = {};
  int descriptor = -1;
  std::uint64_t readers = 1;
  NodeMemory parts_read = {};  ///< a flag for each part

  bool is_wanted() const { return address.load(std::memory_order_acquire) != nullptr; }
};

constinit std::array<Mapping, 16> mappings{};
constinit std::mutex mutex;

/// A value of /proc/meminfo, bytes.
std::uint64_t find_memory_value(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == text.npos) return 0;
  text.remove_prefix(std::min(text.find_first_of("0123456789", at), text.size()));
  std::uint64_t kilobytes = 0;
  std::from_chars(text.data(), text.data() + text.size(), kilobytes);
  return kilobytes * 1024;
}

bool is_memory_free() {
  char text[1024];
  const long size = base::read_file("/proc/meminfo", text, sizeof text);
  if (size <= 0) return false;
  const std::string_view facts(text, static_cast<std::size_t>(size));
  return find_memory_value(facts, "MemAvailable:") * 100 >=
         find_memory_value(facts, "MemTotal:") * kLeastFreePercent;
}

/// Reads a part into the kernel's cache; discards the bytes in `scratch`.
bool read_part(const Mapping& mapping, std::uint64_t part, std::byte* scratch) {
  const std::uint64_t end = std::min((part + 1) * kPartBytes, mapping.range.end);
  std::uint64_t at = std::max(part * kPartBytes, mapping.range.begin);
  while (at < end && mapping.is_wanted()) {
    const iovec piece{scratch, std::min(kCallBytes, end - at)};
    const long result = system_calls.preadv(mapping.descriptor, &piece, 1, at);
    if (result <= 0) return false;
    at += static_cast<std::uint64_t>(result);
  }
  return mapping.is_wanted();
}

void read_parts(Mapping& mapping) {
  std::byte* scratch = base::map_memory(kCallBytes);
  if (scratch == nullptr) return;
  for (;;) {
    const std::uint64_t part = mapping.next.fetch_add(1, std::memory_order_relaxed);
    if (part * kPartBytes >= mapping.range.end || !mapping.is_wanted() || !is_memory_free()) break;
    std::atomic_ref<std::byte> is_read(mapping.parts_read.data()[part]);
    if (is_read.load(std::memory_order_relaxed) != std::byte{0}) continue;
    if (!read_part(mapping, part, scratch)) break;
    is_read.store(std::byte{1}, std::memory_order_relaxed);
  }
  base::unmap(scratch, kCallBytes);
}

/// Ends a thread of the mapping; the last one releases the mapping.
void release_thread(Mapping& mapping) {
  if (mapping.threads.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::scoped_lock lock(mutex);
  mapping.parts_read.close();
  base::close_file(mapping.descriptor);
  mapping.descriptor = -1;
  mapping.address.store(nullptr, std::memory_order_release);
}

void* run_further_reader(void* mapping) {
  read_parts(*static_cast<Mapping*>(mapping));
  release_thread(*static_cast<Mapping*>(mapping));
  return nullptr;
}

bool start_reader(void* (*function)(void*), Mapping& mapping) {
  mapping.threads.fetch_add(1, std::memory_order_acq_rel);
  const bool created = background::start_thread(function, &mapping);
  if (!created) mapping.threads.fetch_sub(1, std::memory_order_acq_rel);
  return created;
}

bool open_flags(Mapping& mapping) {
  struct stat status;
  if (system_calls.status(mapping.descriptor, status) != 0) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  mapping.range.end = std::min(mapping.range.end, size);
  const std::uint64_t bytes = base::round_up(size / kPartBytes + 1, 4096);
  return mapping.parts_read.open("mapped", status, bytes) && mapping.parts_read.reserve(0, bytes);
}

/// Waits until no other process reads the file, and then reads the remaining parts.
void* run_first_reader(void* data) {
  Mapping& mapping = *static_cast<Mapping*>(data);
  if (open_flags(mapping)) {
    while (mapping.is_wanted() && !mapping.parts_read.lock(kReaderLock)) sleep_ns(kPauseNs);
    for (std::uint64_t i = 1; i < mapping.readers && mapping.is_wanted(); ++i)
      start_reader(run_further_reader, mapping);
    read_parts(mapping);
  }
  release_thread(mapping);
  return nullptr;
}

}  // namespace

void start(const void* address, base::Extent range, int descriptor, std::uint64_t readers) {
  if (range.end - range.begin < kLeastRange) return;
  const std::scoped_lock lock(mutex);
  const auto unused =
      std::ranges::find_if(mappings, [](const Mapping& one) { return one.descriptor < 0; });
  if (unused == mappings.end()) return;
  const long own = base::system_call(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (own < 0) return;
  unused->descriptor = static_cast<int>(own);
  unused->range = range;
  unused->readers = readers;
  unused->next.store(range.begin / kPartBytes, std::memory_order_relaxed);
  unused->address.store(address, std::memory_order_release);
  if (start_reader(run_first_reader, *unused)) return;
  base::close_file(unused->descriptor);
  unused->descriptor = -1;
}

void stop(const void* address) {
  for (Mapping& mapping : mappings) {
    const void* expected = address;
    mapping.address.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel);
  }
}

void reset_in_child() {
  new (&mutex) std::mutex;
  for (Mapping& mapping : mappings) {
    mapping.parts_read.reset_in_child();
    if (mapping.descriptor >= 0) base::close_file(mapping.descriptor);
    mapping.descriptor = -1;
    mapping.threads.store(0, std::memory_order_relaxed);
    mapping.address.store(nullptr, std::memory_order_relaxed);
  }
}

}  // namespace pario::buffers::map_ahead
