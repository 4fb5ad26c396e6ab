#include "layers/buffers/process_copy.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <new>

#include "layers/buffers/blocked_signals.hpp"
#include "layers/buffers/file_stamps.hpp"
#include "layers/buffers/memory_pool.hpp"
#include "layers/buffers/pieces.hpp"
#include "layers/buffers/statistics.hpp"
#include "layers/buffers/system_calls.hpp"

namespace pario::buffers {
namespace {

constexpr std::uint64_t kFetchBytes = 8 << 20;  // in one system call

}  // namespace

bool ProcessCopy::is_copy_of(const struct stat& file) const { return is_unchanged(file_, file); }

bool ProcessCopy::is_valid(int descriptor) {
  const std::uint64_t now = read_clock(CLOCK_MONOTONIC_COARSE);
  if (now - checked_ns_ < kValidNs) return true;
  struct stat file;
  if (system_calls.status(descriptor, file) != 0 || !is_copy_of(file)) return false;
  checked_ns_ = now;
  return true;
}

long ProcessCopy::read(std::span<const iovec> pieces, std::uint64_t offset) const {
  const std::uint64_t begin = std::min(offset, size_);
  return scatter({memory_ + begin, size_ - begin}, pieces);
}

void ProcessCopy::assign(std::byte* memory, std::uint64_t size) {
  memory_ = memory;
  size_ = size;
  used_ = true;
}

void ProcessCopy::release() {
  static constinit std::uint64_t releases = 0;
  used_ = false;
  released_at_ = ++releases;
  if (file_.st_ino == 0) discard();
}

void ProcessCopy::discard() {
  if (memory_ != nullptr) memory_pool::release(memory_, size_);
  *this = {};
}

bool ProcessCopy::fetch(int descriptor, const struct stat& file, Statistics::Calls& calls) {
  for (std::uint64_t done = 0; done < size_;) {
    const std::uint64_t start = trace::ticks();
    const iovec rest{memory_ + done, std::min(kFetchBytes, size_ - done)};
    const long result = system_calls.preadv(descriptor, &rest, 1, done);
    count_call(calls, result, start);
    if (result <= 0) return false;
    done += static_cast<std::uint64_t>(result);
  }
  struct stat after;
  return system_calls.status(descriptor, after) == 0 && is_unchanged(file, after);
}

namespace process_copies {
namespace {

constinit std::array<ProcessCopy, 32> copies{};
constinit std::mutex mutex;

// The functions below are called with the mutex held, except find_or_assign().

/// The copy that has been unused for the longest time, of those that `fits` selects; null if there
/// is none.
template <class Fits>
ProcessCopy* find_oldest_unused(Fits fits) {
  ProcessCopy* oldest = nullptr;
  for (ProcessCopy& copy : copies)
    if (!copy.is_used() && fits(copy) && (oldest == nullptr || copy.is_older_than(*oldest)))
      oldest = &copy;
  return oldest;
}

bool evict_oldest_unused() {
  ProcessCopy* oldest =
      find_oldest_unused([](const ProcessCopy& copy) { return copy.has_memory(); });
  if (oldest != nullptr) oldest->discard();
  return oldest != nullptr;
}

std::byte* allocate_and_evict(std::uint64_t bytes) {
  for (;;) {
    if (std::byte* memory = memory_pool::allocate(bytes)) return memory;
    if (!evict_oldest_unused()) return nullptr;
  }
}

/// Returns an unused valid copy, or one with memory that has to be fetched (`is_new`).
ProcessCopy* find_or_assign(const struct stat& file, bool& is_new) {
  const std::scoped_lock lock(mutex);
  for (ProcessCopy& copy : copies) {
    if (copy.is_used() || !copy.is_of_file(file)) continue;
    if (copy.is_copy_of(file)) return copy.use(), &copy;
    copy.discard();
  }
  is_new = true;
  const auto size = static_cast<std::uint64_t>(file.st_size);
  std::byte* memory = allocate_and_evict(size);
  if (memory == nullptr) return nullptr;
  ProcessCopy* copy = find_oldest_unused([](const ProcessCopy&) { return true; });
  if (copy == nullptr) return memory_pool::release(memory, size), nullptr;
  copy->discard();
  copy->assign(memory, size);
  return copy;
}

}  // namespace

ProcessCopy* attach(int descriptor, std::uint64_t most, Statistics::Calls& calls) {
  struct stat file;
  if (system_calls.status(descriptor, file) != 0 || !S_ISREG(file.st_mode)) return nullptr;
  if (file.st_size == 0 || static_cast<std::uint64_t>(file.st_size) > most ||
      !has_reliable_stamps(file))
    return nullptr;
  bool is_new = false;
  ProcessCopy* copy = find_or_assign(file, is_new);
  if (copy == nullptr) return nullptr;
  if (is_new && !copy->fetch(descriptor, file, calls)) return detach(*copy), nullptr;
  if (is_new) {
    const std::scoped_lock lock(mutex);
    copy->set_file(file);
  }
  copy->expire();
  return copy->is_valid(descriptor) ? copy : (detach(*copy), nullptr);
}

void detach(ProcessCopy& copy) {
  const std::scoped_lock lock(mutex);
  copy.release();
}

std::uint64_t next_attempt_ns() { return read_clock(CLOCK_MONOTONIC_COARSE) + kValidNs; }

bool is_reached(std::uint64_t time_ns) { return read_clock(CLOCK_MONOTONIC_COARSE) >= time_ns; }

std::byte* allocate_memory(std::uint64_t bytes) {
  if (std::byte* memory = memory_pool::allocate(bytes)) return memory;
  const HandlerSafeLock lock(mutex);
  return allocate_and_evict(bytes);
}

void reset_in_child() {
  new (&mutex) std::mutex;
  for (ProcessCopy& copy : copies)
    if (copy.is_used()) copy.release();
}

}  // namespace process_copies
}  // namespace pario::buffers
