#include "layers/buffers/map_ahead.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "core/base/sleep.hpp"
#include "core/base/threads.hpp"
#include "layers/buffers/map_allowance.hpp"
#include "layers/buffers/node_memory.hpp"
#include "layers/buffers/resident_pages.hpp"
#include "layers/buffers/system_calls.hpp"

namespace pario::buffers::map_ahead {
namespace {

constexpr std::uint64_t kLeastRange = 1 << 20;
constexpr std::uint64_t kPartBytes = 1 << 20;  // read by one system call
constexpr std::uint64_t kMostParts = 4;        // that a thread claims at a time
constexpr int kMostScans = 64;                 // of page tables, for one claim
constexpr std::uint64_t kShortestPauseNs = 1'000'000, kLongestPauseNs = 64'000'000;
constexpr int kLowestDescriptor = 1000;  // above those that programs use

struct Mapping {
  std::atomic<const void*> address{nullptr};  ///< null: not in use, or to be stopped
  std::atomic<int> threads{0};
  std::atomic<std::uint64_t> started{0};  ///< threads so far
  std::atomic<std::uint64_t> next{0};     ///< part of the file at which the next claim begins
  base::Extent range = {};
  int descriptor = -1;
  std::uint64_t readers = 1;
  NodeMemory claims = {};  ///< a flag for each part

  bool is_wanted() const { return address.load(std::memory_order_acquire) != nullptr; }
  base::Extent parts() const {
    return {range.begin / kPartBytes, (range.end + kPartBytes - 1) / kPartBytes};
  }
  base::Extent bytes_of(base::Extent some) const {
    return {std::max(some.begin * kPartBytes, range.begin),
            std::min(some.end * kPartBytes, range.end)};
  }
  std::atomic_ref<std::byte> flag(std::uint64_t part) const {
    return std::atomic_ref(claims.data()[part]);
  }
  bool is_claimed(std::uint64_t part) const {
    return flag(part).load(std::memory_order_relaxed) != std::byte{0};
  }
  bool claim(std::uint64_t part) const {
    return flag(part).exchange(std::byte{1}, std::memory_order_relaxed) == std::byte{0};
  }
};

struct State {
  std::array<Mapping, 16> mappings = {};
  std::mutex mutex;
  MapAllowance allowance;
};
constinit State state{};

/// Calls `f` with the unclaimed ranges of parts, from the next claim on and round the end of the
/// mapping, until it returns true.
template <class F>
void for_each_unclaimed(const Mapping& mapping, F f) {
  const base::Extent all = mapping.parts();
  const std::uint64_t next = std::max(mapping.next.load(std::memory_order_relaxed), all.begin);
  for (const base::Extent side : {base::Extent{next, all.end}, base::Extent{all.begin, next}})
    for (std::uint64_t begin = side.begin; begin < side.end; ++begin) {
      if (mapping.is_claimed(begin)) continue;
      std::uint64_t end = begin + 1;
      while (end < side.end && !mapping.is_claimed(end)) ++end;
      if (f(base::Extent{begin, end})) return;
      begin = end;
    }
}

/// Lets the next claim begin where the program has touched a page of an unclaimed part.
void follow_program(Mapping& mapping) {
  const auto* address = static_cast<const char*>(mapping.address.load(std::memory_order_acquire));
  int scans = 0;
  const auto is_found = [&](base::Extent parts) {
    const base::Extent bytes = mapping.bytes_of(parts);
    const char* begin = address + (bytes.begin - mapping.range.begin);
    const char* touched = resident_pages::find_first(begin, begin + bytes.length());
    if (touched == nullptr) return ++scans >= kMostScans;
    const auto offset = bytes.begin + static_cast<std::uint64_t>(touched - begin);
    mapping.next.store(offset / kPartBytes, std::memory_order_relaxed);
    return true;
  };
  if (address != nullptr) for_each_unclaimed(mapping, is_found);
}

/// Claims up to `most` parts that follow each other; none: all are claimed.
base::Extent claim_parts(Mapping& mapping, std::uint64_t most) {
  base::Extent parts;
  for_each_unclaimed(mapping, [&](base::Extent unclaimed) {
    if (!mapping.claim(unclaimed.begin)) return false;
    parts = {unclaimed.begin, unclaimed.begin + 1};
    while (parts.end < unclaimed.end && parts.length() < most && mapping.claim(parts.end))
      ++parts.end;
    mapping.next.store(parts.end, std::memory_order_relaxed);
    return true;
  });
  return parts;
}

/// True if the first and the last byte of a part are in the kernel's cache.
bool is_cached(const Mapping& mapping, std::uint64_t part) {
  const base::Extent bytes = mapping.bytes_of({part, part + 1});
  return system_calls.is_cached(mapping.descriptor, bytes.begin) &&
         system_calls.is_cached(mapping.descriptor, bytes.end - 1);
}

/// Reads parts into the kernel's cache; discards the bytes in `scratch`. All are requested at once.
bool read_parts(const Mapping& mapping, base::Extent parts, std::byte* scratch) {
  for (; parts.begin < parts.end && is_cached(mapping, parts.begin); ++parts.begin)
    state.allowance.give_back(kPartBytes);
  if (parts.empty()) return true;
  if (!system_calls.is_memory_free()) return false;
  auto [at, end] = mapping.bytes_of(parts);
  system_calls.start_reading(mapping.descriptor, at, end - at);
  while (at < end && mapping.is_wanted()) {
    const iovec piece{scratch, std::min(kPartBytes, end - at)};
    const long result = system_calls.preadv(mapping.descriptor, &piece, 1, at);
    if (result <= 0) return false;
    at += static_cast<std::uint64_t>(result);
  }
  return true;
}

enum class Outcome : std::uint8_t { read, waiting, done };

/// Reads some parts while this process holds the lock, so that only `readers` threads of the node
/// read at a time.
Outcome read_some(Mapping& mapping, std::uint64_t lock, std::byte* scratch) {
  const std::uint64_t most =
      state.allowance.take(resident_pages::find_progress(), kPartBytes, kMostParts);
  if (most == 0) return Outcome::waiting;
  if (!mapping.claims.lock(lock)) {
    state.allowance.give_back(most * kPartBytes);
    return Outcome::waiting;
  }
  follow_program(mapping);
  const base::Extent parts = claim_parts(mapping, most);
  state.allowance.give_back((most - parts.length()) * kPartBytes);
  const bool is_read = !parts.empty() && read_parts(mapping, parts, scratch);
  mapping.claims.unlock(lock);
  return is_read ? Outcome::read : Outcome::done;
}

void read_mapping(Mapping& mapping) {
  const std::uint64_t lock = mapping.started.fetch_add(1, std::memory_order_relaxed);
  std::byte* scratch = base::map_memory(kPartBytes);
  if (scratch == nullptr) return;
  std::uint64_t pause = kShortestPauseNs;
  while (mapping.is_wanted()) {
    const Outcome outcome = read_some(mapping, lock, scratch);
    if (outcome == Outcome::done) break;
    if (outcome == Outcome::waiting) base::sleep_ns(pause);
    pause = outcome == Outcome::read ? kShortestPauseNs : std::min(2 * pause, kLongestPauseNs);
  }
  base::unmap(scratch, kPartBytes);
}

/// Ends a thread of the mapping; the last one releases the mapping.
void release_thread(Mapping& mapping) {
  if (mapping.threads.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::scoped_lock lock(state.mutex);
  mapping.claims.close();
  base::close_file(mapping.descriptor);
  mapping.descriptor = -1;
  mapping.address.store(nullptr, std::memory_order_release);
}

void* run_further_reader(void* mapping) {
  read_mapping(*static_cast<Mapping*>(mapping));
  release_thread(*static_cast<Mapping*>(mapping));
  return nullptr;
}

bool start_reader(void* (*function)(void*), Mapping& mapping) {
  mapping.threads.fetch_add(1, std::memory_order_acq_rel);
  const bool created = base::start_detached_thread(function, &mapping);
  if (!created) mapping.threads.fetch_sub(1, std::memory_order_acq_rel);
  return created;
}

/// Opens the flags that the processes of the node share. If there is no other process, flags that
/// killed processes have left are cleared.
bool open_claims(Mapping& mapping) {
  const std::scoped_lock lock(state.mutex);
  struct stat status;
  if (system_calls.status(mapping.descriptor, status) != 0) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  mapping.range.end = std::min(mapping.range.end, size);
  const std::uint64_t bytes = base::round_up(size / kPartBytes + 1, 4096);
  if (!mapping.claims.open("mapped", status, bytes) || !mapping.claims.reserve(0, bytes))
    return false;
  mapping.claims.run_if_alone([&] { std::memset(mapping.claims.data(), 0, bytes); });
  return mapping.range.begin < mapping.range.end;
}

void* run_first_reader(void* data) {
  Mapping& mapping = *static_cast<Mapping*>(data);
  if (open_claims(mapping)) {
    for (std::uint64_t i = 1; i < mapping.readers && mapping.is_wanted(); ++i)
      start_reader(run_further_reader, mapping);
    read_mapping(mapping);
  }
  release_thread(mapping);
  return nullptr;
}

bool is_used(const Mapping& mapping) { return mapping.descriptor >= 0; }

}  // namespace

void start(const void* address, base::Extent range, int descriptor, std::uint64_t readers) {
  if (range.end - range.begin < kLeastRange) return;
  const std::scoped_lock lock(state.mutex);
  const auto unused = std::ranges::find_if_not(state.mappings, is_used);
  if (unused == state.mappings.end()) return;
  const long own = base::system_call(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (own < 0) return;
  state.allowance.add_mapping(resident_pages::find_progress(),
                              std::ranges::none_of(state.mappings, is_used));
  unused->descriptor = static_cast<int>(own);
  unused->range = range;
  unused->readers = readers;
  unused->started.store(0, std::memory_order_relaxed);
  unused->next.store(range.begin / kPartBytes, std::memory_order_relaxed);
  unused->address.store(address, std::memory_order_release);
  if (start_reader(run_first_reader, *unused)) return;
  base::close_file(unused->descriptor);
  unused->descriptor = -1;
}

void stop(const void* address) {
  for (Mapping& mapping : state.mappings) {
    const void* expected = address;
    mapping.address.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel);
  }
}

void end() {
  const std::scoped_lock lock(state.mutex);
  for (Mapping& mapping : state.mappings) {
    mapping.address.store(nullptr, std::memory_order_release);
    mapping.claims.remove_name_if_alone();
  }
}

void reset_in_child() {
  new (&state.mutex) std::mutex;
  new (&state.allowance) MapAllowance;
  for (Mapping& mapping : state.mappings) {
    mapping.claims.reset_in_child();
    if (mapping.descriptor >= 0) base::close_file(mapping.descriptor);
    mapping.descriptor = -1;
    mapping.threads.store(0, std::memory_order_relaxed);
    mapping.address.store(nullptr, std::memory_order_relaxed);
  }
}

}  // namespace pario::buffers::map_ahead
