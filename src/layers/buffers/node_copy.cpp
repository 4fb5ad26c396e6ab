#include "layers/buffers/node_copy.hpp"

#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "core/base/base.hpp"
#include "core/base/sleep.hpp"
#include "layers/buffers/memory_pool.hpp"
#include "layers/buffers/node_memory.hpp"
#include "layers/buffers/pieces.hpp"
#include "layers/buffers/statistics.hpp"
#include "layers/buffers/system_calls.hpp"

namespace pario::buffers {
namespace {

constexpr std::uint64_t kPartBytes = 4 << 20;
constexpr std::uint64_t kPatienceNs =
    10'000'000'000;                      // for a process stopped while it reads a part
constexpr std::uint64_t kNextParts = 8;  // that a process may read while it waits for another one
constexpr std::uint64_t kPauseNs = 300'000;

std::uint64_t count_parts(std::uint64_t size) { return (size + kPartBytes - 1) / kPartBytes; }

/// Bytes before the data: a flag for each part that is present.
std::uint64_t flags_size(std::uint64_t size) { return base::round_up(count_parts(size), 4096); }

bool is_same_state(const struct stat& a, const struct stat& b) {
  return file_id_of(a) == file_id_of(b) && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

bool has_shared_memory_for(std::uint64_t bytes) {
  struct statfs shared{};
  return base::system_call(SYS_statfs, "/dev/shm", &shared) >= 0 &&
         bytes <= shared.f_bavail * static_cast<std::uint64_t>(shared.f_bsize) / 2;
}

}  // namespace

/// The copy of one file. The table's mutex guards `users`; the locks of the memory guard its parts.
class NodeCopy {
 public:
  bool open(const struct stat& status) {
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (!memory_.open("once", status, flags_size(size) + size)) return false;
    if (!memory_.reserve(0, flags_size(size))) return memory_.close(), false;
    file_ = status;
    return true;
  }
  void close() { memory_.close(); }
  void reset_in_child() { memory_.reset_in_child(); }
  bool is_open() const { return memory_.is_open(); }
  bool is_copy_of(const struct stat& status) const {
    return is_open() && is_same_state(file_, status);
  }
  std::uint64_t size() const { return static_cast<std::uint64_t>(file_.st_size); }

  /// Makes the bytes of a range present; false if that is not possible.
  bool fetch(int descriptor, base::Extent range) {
    for (std::uint64_t part = range.begin / kPartBytes; part * kPartBytes < range.end; ++part)
      if (!fetch_part(descriptor, part)) return false;
    return true;
  }
  const std::byte* data(std::uint64_t offset) const {
    return memory_.data() + flags_size(size()) + offset;
  }

  int users = 0;

 private:
  bool is_present(std::uint64_t part) const {
    return std::atomic_ref(memory_.data()[part]).load(std::memory_order_acquire) != std::byte{0};
  }

  /// Waits for another process that reads the part, and reads the next parts meanwhile.
  bool fetch_part(int descriptor, std::uint64_t part) {
    for (const std::uint64_t begin = base::monotonic_ns(); !is_present(part);) {
      if (memory_.lock(part)) return fetch_locked_part(descriptor, part);
      if (base::monotonic_ns() - begin > kPatienceNs) return false;
      if (!fetch_next_part(descriptor, part)) base::sleep_ns(kPauseNs);
    }
    return true;
  }

  bool fetch_next_part(int descriptor, std::uint64_t part) {
    const std::uint64_t end = std::min(part + 1 + kNextParts, count_parts(size()));
    for (std::uint64_t next = part + 1; next < end; ++next)
      if (!is_present(next) && memory_.lock(next)) return fetch_locked_part(descriptor, next);
    return false;
  }

  bool fetch_locked_part(int descriptor, std::uint64_t part) {
    const bool present = is_present(part) || read_part(descriptor, part);
    if (present)
      std::atomic_ref(memory_.data()[part]).store(std::byte{1}, std::memory_order_release);
    memory_.unlock(part);
    return present;
  }

  bool read_part(int descriptor, std::uint64_t part) {
    const std::uint64_t begin = part * kPartBytes, bytes = std::min(kPartBytes, size() - begin);
    const std::uint64_t place = flags_size(size()) + begin;
    if (!memory_.reserve(place, bytes)) return false;
    for (std::uint64_t done = 0; done < bytes;) {
      // Whole pages, as O_DIRECT requires; the call ends at the end of the file.
      const iovec rest{memory_.data() + place + done, base::round_up(bytes - done, 4096)};
      const long result = system_calls.preadv(descriptor, &rest, 1, begin + done);
      if (result <= 0) return false;
      done += static_cast<std::uint64_t>(result);
    }
    return true;
  }

  struct stat file_ = {};
  NodeMemory memory_;
};

namespace node_copies {
namespace {

constinit std::array<NodeCopy, 16> copies{};
constinit std::mutex mutex;

// The functions below are called with the mutex held.

/// Closes and returns a copy without users; null if all have users.
NodeCopy* evict_unused() {
  const auto found = std::ranges::find(copies, 0, &NodeCopy::users);
  if (found == copies.end()) return nullptr;
  found->close();
  return &*found;
}

std::uint64_t total_size() {
  std::uint64_t sum = 0;
  for (const NodeCopy& copy : copies)
    if (copy.is_open()) sum += copy.size();
  return sum;
}

/// Closes copies without users until `bytes` more fit into the memory limit.
bool make_room(std::uint64_t bytes) {
  while (total_size() + bytes > memory_pool::limit()) {
    const auto unused = std::ranges::find_if(
        copies, [](const NodeCopy& copy) { return copy.is_open() && copy.users == 0; });
    if (unused == copies.end()) return false;
    unused->close();
  }
  return true;
}

}  // namespace

NodeCopy* attach(const struct stat& status) {
  const std::scoped_lock lock(mutex);
  for (NodeCopy& copy : copies)
    if (copy.is_copy_of(status)) return ++copy.users, &copy;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (!make_room(size)) return nullptr;
  NodeCopy* copy = size == 0 || !has_shared_memory_for(size) ? nullptr : evict_unused();
  if (copy == nullptr || !copy->open(status)) return nullptr;
  copy->users = 1;
  return copy;
}

void detach(NodeCopy& copy) {
  const std::scoped_lock lock(mutex);
  --copy.users;
}

long read(NodeCopy& copy, int descriptor, std::span<const iovec> pieces, std::uint64_t offset) {
  if (offset >= copy.size()) return 0;
  const std::uint64_t bytes = std::min(bytes_of(pieces), copy.size() - offset);
  if (!copy.fetch(descriptor, {offset, offset + bytes})) return kPass;
  return scatter({copy.data(offset), bytes}, pieces);
}

void close_all() {
  const std::scoped_lock lock(mutex);
  for (NodeCopy& copy : copies) copy.close();
}

void reset_in_child() {
  new (&mutex) std::mutex;
  for (NodeCopy& copy : copies) {
    copy.reset_in_child();
    copy.users = 0;
  }
}

}  // namespace node_copies
}  // namespace pario::buffers
