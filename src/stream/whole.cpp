#include "stream/whole.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "stream/file.hpp"
#include "stream/memory.hpp"

namespace pario::stream {
namespace {

constexpr std::uint64_t kTrustedNs = 100'000'000;  // for which a file is taken to be what it was
constexpr std::uint64_t kWholePiece = 8 << 20;

std::uint64_t ns_of(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return ns_of(time);
}

/// A stamp may stay the same over changes that follow each other closely: a clock of the file system ticks every few milliseconds, of some
/// every second.
bool is_settled(const struct stat& file) {
  const std::uint64_t latest = std::max(ns_of(file.st_mtim), ns_of(file.st_ctim)), present = now(CLOCK_REALTIME_COARSE);
  const std::uint64_t tick = latest % 1'000'000'000 == 0 ? 2'000'000'000 : kTrustedNs;
  return present > latest && present - latest > tick;
}

bool is_unchanged(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size && ns_of(a.st_mtim) == ns_of(b.st_mtim) &&
         ns_of(a.st_ctim) == ns_of(b.st_ctim);
}

}  // namespace

bool Whole::is_copy_of(const struct stat& file) const { return is_unchanged(file_, file); }

bool Whole::is_right(int descriptor) {
  const std::uint64_t present = now(CLOCK_MONOTONIC_COARSE);
  if (present - looked_ < kTrustedNs) return true;
  struct stat file;
  if (kernel.status(descriptor, file) != 0 || !is_copy_of(file)) return false;
  looked_ = present;
  return true;
}

long Whole::read(std::span<const iovec> pieces, std::uint64_t offset) const {
  std::uint64_t at = std::min(offset, size_);
  const std::uint64_t begin = at;
  for (const iovec& piece : pieces) {
    const std::uint64_t part = std::min<std::uint64_t>(piece.iov_len, size_ - at);
    if (part != 0) std::memcpy(piece.iov_base, memory_ + at, part);
    at += part;
  }
  return static_cast<long>(at - begin);
}

void Whole::use(std::byte* memory, std::uint64_t size) {
  memory_ = memory;
  size_ = size;
  used_ = true;
}

void Whole::put_back() {
  static constinit std::uint64_t turns = 0;
  used_ = false;
  turn_ = ++turns;
  if (file_.st_ino == 0) end();
}

void Whole::end() {
  if (memory_ != nullptr) memory::give_back(memory_, size_);
  *this = {};
}

bool Whole::fetch(int descriptor, const struct stat& file, Statistics::Calls& calls) {
  for (std::uint64_t done = 0; done < size_;) {
    const std::uint64_t start = trace::ticks();
    const iovec rest{memory_ + done, std::min(kWholePiece, size_ - done)};
    const long result = kernel.preadv(descriptor, &rest, 1, done);
    count_call(calls, result > 0 ? static_cast<std::uint64_t>(result) : 0, start);
    if (result <= 0) return false;
    done += static_cast<std::uint64_t>(result);
  }
  struct stat after;
  return kernel.status(descriptor, after) == 0 && is_unchanged(file, after);
}

namespace whole {
namespace {

constinit std::array<Whole, 32> copies{};
constinit std::mutex mutex;

/// One that is not used, the oldest; null: all are.
Whole* oldest() {
  Whole* found = nullptr;
  for (Whole& copy : copies)
    if (!copy.is_used() && (found == nullptr || copy.is_older_than(*found))) found = &copy;
  return found;
}

/// What nobody uses gives way, the oldest first. The lock is held.
std::byte* take_locked(std::uint64_t bytes) {
  for (;;) {
    if (std::byte* memory = memory::take(bytes)) return memory;
    Whole* old = nullptr;
    for (Whole& copy : copies)
      if (copy.has_memory() && !copy.is_used() && (old == nullptr || copy.is_older_than(*old))) old = &copy;
    if (old == nullptr) return nullptr;
    old->end();
  }
}

/// A copy from before, or one that has to be fetched (`fresh`).
Whole* find(const struct stat& file, bool& fresh) {
  const std::scoped_lock lock(mutex);
  for (Whole& copy : copies) {
    if (copy.is_used() || !copy.is_of(file)) continue;
    if (copy.is_copy_of(file)) return copy.use_again(), &copy;
    copy.end();
  }
  fresh = true;
  const auto size = static_cast<std::uint64_t>(file.st_size);
  std::byte* memory = take_locked(size);
  Whole* copy = memory == nullptr ? nullptr : oldest();
  if (copy == nullptr) return memory != nullptr ? memory::give_back(memory, size) : void(), nullptr;
  copy->end();
  copy->use(memory, size);
  return copy;
}

}  // namespace

Whole* attach(int descriptor, std::uint64_t most, Statistics::Calls& calls) {
  struct stat file;
  if (kernel.status(descriptor, file) != 0 || !S_ISREG(file.st_mode)) return nullptr;
  if (file.st_size == 0 || static_cast<std::uint64_t>(file.st_size) > most || !is_settled(file)) return nullptr;
  bool fresh = false;
  Whole* copy = find(file, fresh);
  if (copy == nullptr) return nullptr;
  if (fresh && !copy->fetch(descriptor, file, calls)) return detach(*copy), nullptr;
  if (fresh) {
    const std::scoped_lock lock(mutex);
    copy->finish(file);
  }
  copy->doubt();
  return copy->is_right(descriptor) ? copy : (detach(*copy), nullptr);
}

void detach(Whole& copy) {
  const std::scoped_lock lock(mutex);
  copy.put_back();
}

std::uint64_t later() { return now(CLOCK_MONOTONIC_COARSE) + kTrustedNs; }

bool is_time(std::uint64_t when) { return now(CLOCK_MONOTONIC_COARSE) >= when; }

std::byte* take_memory(std::uint64_t bytes) {
  if (std::byte* memory = memory::take(bytes)) return memory;
  const std::scoped_lock lock(mutex);
  return take_locked(bytes);
}

void forget() {
  new (&mutex) std::mutex;
  for (Whole& copy : copies)
    if (copy.is_used()) copy.put_back();
}

}  // namespace whole
}  // namespace pario::stream
