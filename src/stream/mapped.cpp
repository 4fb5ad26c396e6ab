#include "stream/mapped.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <mutex>
#include <string_view>

#include "stream/node.hpp"
#include "stream/stream.hpp"

namespace pario::stream::mapped {
namespace {

constexpr std::uint64_t kLeast = 1 << 20;  // of a mapping that is worth it
constexpr std::uint64_t kPiece = 8 << 20;  // for one reader at a time
constexpr std::uint64_t kCall = 1 << 20;   // of that, in one call
constexpr std::uint64_t kLeastFree = 10;   // percent of the memory that stay free
constexpr std::uint64_t kTurn = 0;         // the lock of the process that reads
constexpr std::uint64_t kPauseNs = 100'000'000;

struct Mapping {
  std::atomic<const void*> address{nullptr};  ///< null: not in use, or to be ended
  std::atomic<int> threads{0};
  std::atomic<std::uint64_t> next{0};  ///< piece of the file
  base::Extent range = {};
  int descriptor = -1;
  std::uint64_t readers = 1;
  NodeMemory node = {};  ///< a byte for each piece: it was read

  bool wanted() const { return address.load(std::memory_order_acquire) != nullptr; }
};

constinit std::array<Mapping, 16> mappings{};
constinit std::mutex mutex;

/// A line of /proc/meminfo, bytes.
std::uint64_t memory_of(std::string_view text, std::string_view name) {
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
  return memory_of(facts, "MemAvailable:") * 100 >= memory_of(facts, "MemTotal:") * kLeastFree;
}

/// Through the cache of the kernel, where it stays.
bool read_piece(const Mapping& mapping, std::uint64_t piece, std::byte* scratch) {
  const std::uint64_t end = std::min((piece + 1) * kPiece, mapping.range.end);
  for (std::uint64_t at = std::max(piece * kPiece, mapping.range.begin); at < end && mapping.wanted();) {
    const iovec part{scratch, std::min(kCall, end - at)};
    const long result = kernel.preadv(mapping.descriptor, &part, 1, at);
    if (result <= 0) return false;
    at += static_cast<std::uint64_t>(result);
  }
  return mapping.wanted();
}

void read_pieces(Mapping& mapping) {
  std::byte* scratch = base::map_memory(kCall);
  if (scratch == nullptr) return;
  for (;;) {
    const std::uint64_t piece = mapping.next.fetch_add(1, std::memory_order_relaxed);
    if (piece * kPiece >= mapping.range.end || !mapping.wanted() || !is_memory_free()) break;
    std::atomic_ref<std::byte> there(mapping.node.data()[piece]);
    if (there.load(std::memory_order_relaxed) != std::byte{0}) continue;
    if (!read_piece(mapping, piece, scratch)) break;
    there.store(std::byte{1}, std::memory_order_relaxed);
  }
  base::unmap(scratch, kCall);
}

/// The last thread gives up what the mapping had.
void leave(Mapping& mapping) {
  if (mapping.threads.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::scoped_lock lock(mutex);
  mapping.node.close();
  base::close_file(mapping.descriptor);
  mapping.descriptor = -1;
  mapping.address.store(nullptr, std::memory_order_release);
}

void* read_beside(void* mapping) {
  read_pieces(*static_cast<Mapping*>(mapping));
  leave(*static_cast<Mapping*>(mapping));
  return nullptr;
}

bool start(void* (*run)(void*), Mapping& mapping) {
  mapping.threads.fetch_add(1, std::memory_order_acq_rel);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool created = pthread_create(&thread, nullptr, run, &mapping) == 0;
  if (created)
    pthread_detach(thread);
  else
    mapping.threads.fetch_sub(1, std::memory_order_acq_rel);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return created;
}

bool open_node(Mapping& mapping) {
  struct stat status;
  if (kernel.status(mapping.descriptor, status) != 0) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  mapping.range.end = std::min(mapping.range.end, size);
  const std::uint64_t bytes = base::round_up(size / kPiece + 1, 4096);
  return mapping.node.open("mapped", status, bytes) && mapping.node.reserve(0, bytes);
}

/// Waits until no other process reads the file, and then reads what that one has not.
void* read_in_turn(void* data) {
  Mapping& mapping = *static_cast<Mapping*>(data);
  if (open_node(mapping)) {
    while (mapping.wanted() && !mapping.node.lock(kTurn)) {
      const timespec pause{0, kPauseNs};
      base::system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, nullptr);
    }
    for (std::uint64_t i = 1; i < mapping.readers && mapping.wanted(); ++i) start(read_beside, mapping);
    read_pieces(mapping);
  }
  leave(mapping);
  return nullptr;
}

}  // namespace

void begin(const void* address, base::Extent range, int descriptor, std::uint64_t readers) {
  if (range.end - range.begin < kLeast) return;
  const std::scoped_lock lock(mutex);
  const auto free = std::ranges::find_if(mappings, [](const Mapping& one) { return one.descriptor < 0; });
  if (free == mappings.end()) return;
  const long own = base::system_call(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, 1000);
  if (own < 0) return;
  free->descriptor = static_cast<int>(own);
  free->range = range;
  free->readers = readers;
  free->next.store(range.begin / kPiece, std::memory_order_relaxed);
  free->address.store(address, std::memory_order_release);
  if (start(read_in_turn, *free)) return;
  base::close_file(free->descriptor);
  free->descriptor = -1;
}

void end(const void* address) {
  for (Mapping& mapping : mappings) {
    const void* is = address;
    mapping.address.compare_exchange_strong(is, nullptr, std::memory_order_acq_rel);
  }
}

void forget() {
  new (&mutex) std::mutex;
  for (Mapping& mapping : mappings) {
    mapping.node.forget();
    if (mapping.descriptor >= 0) base::close_file(mapping.descriptor);
    mapping.descriptor = -1;
    mapping.threads.store(0, std::memory_order_relaxed);
    mapping.address.store(nullptr, std::memory_order_relaxed);
  }
}

}  // namespace pario::stream::mapped
