#include "stream/once.hpp"

#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "base/base.hpp"
#include "stream/file.hpp"
#include "stream/memory.hpp"
#include "stream/node.hpp"
#include "stream/stream.hpp"

namespace pario::stream {
namespace {

constexpr std::uint64_t kPiece = 4 << 20;
constexpr std::uint64_t kPatienceNs = 10'000'000'000;  // for a process that has stopped while it read a piece

constexpr std::uint64_t kAhead = 8;  // pieces that are read while another one is waited for

void pause() {
  const timespec moment{0, 300'000};
  base::system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, nullptr);
}

std::uint64_t pieces_of(std::uint64_t size) { return (size + kPiece - 1) / kPiece; }
/// In front of the data, a byte for each piece: it is there.
std::uint64_t head_of(std::uint64_t size) { return base::round_up(pieces_of(size), 4096); }

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

bool is_room_for(std::uint64_t bytes) {
  struct statfs shared{};
  return base::system_call(SYS_statfs, "/dev/shm", &shared) >= 0 &&
         bytes <= shared.f_bavail * static_cast<std::uint64_t>(shared.f_bsize) / 2;
}

}  // namespace

class Once {
 public:
  bool begin(const struct stat& status) {
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (!memory_.open("once", status, head_of(size) + size)) return false;
    if (!memory_.reserve(0, head_of(size))) return memory_.close(), false;
    file_ = status;
    return true;
  }
  bool is(const struct stat& status) const { return memory_.is_open() && is_same(file_, status); }
  bool is_open() const { return memory_.is_open(); }
  std::uint64_t size() const { return static_cast<std::uint64_t>(file_.st_size); }
  void end() { memory_.close(); }
  void forget() { memory_.forget(); }

  /// True: the bytes of the range are there.
  bool fetch(int descriptor, base::Extent range) {
    for (std::uint64_t piece = range.begin / kPiece; piece * kPiece < range.end; ++piece)
      if (!fetch_piece(descriptor, piece)) return false;
    return true;
  }
  const std::byte* at(std::uint64_t offset) const { return memory_.data() + head_of(size()) + offset; }

  int users = 0;

 private:
  bool is_there(std::uint64_t piece) const {
    return std::atomic_ref(memory_.data()[piece]).load(std::memory_order_acquire) != std::byte{0};
  }

  /// Waits for who reads it, and meanwhile reads what comes next.
  bool fetch_piece(int descriptor, std::uint64_t piece) {
    for (const std::uint64_t begin = base::monotonic_ns(); !is_there(piece);) {
      if (memory_.lock(piece)) return read_locked_piece(descriptor, piece);
      if (base::monotonic_ns() - begin > kPatienceNs) return false;
      if (!read_one_of_the_next(descriptor, piece)) pause();
    }
    return true;
  }

  bool read_one_of_the_next(int descriptor, std::uint64_t piece) {
    const std::uint64_t end = std::min(piece + 1 + kAhead, pieces_of(size()));
    for (std::uint64_t next = piece + 1; next < end; ++next)
      if (!is_there(next) && memory_.lock(next)) return read_locked_piece(descriptor, next);
    return false;
  }

  bool read_locked_piece(int descriptor, std::uint64_t piece) {
    const bool there = is_there(piece) || read_piece(descriptor, piece);
    if (there) std::atomic_ref(memory_.data()[piece]).store(std::byte{1}, std::memory_order_release);
    memory_.unlock(piece);
    return there;
  }

  bool read_piece(int descriptor, std::uint64_t piece) {
    const std::uint64_t begin = piece * kPiece, bytes = std::min(kPiece, size() - begin), head = head_of(size());
    if (!memory_.reserve(head + begin, bytes)) return false;
    for (std::uint64_t done = 0; done < bytes;) {
      // Whole pages, as O_DIRECT wants them; the file ends where it ends.
      const iovec rest{memory_.data() + head + begin + done, base::round_up(bytes - done, 4096)};
      const long result = kernel.preadv(descriptor, &rest, 1, begin + done);
      if (result <= 0) return false;
      done += static_cast<std::uint64_t>(result);
    }
    return true;
  }

  struct stat file_ = {};
  NodeMemory memory_;
};

namespace once {
namespace {

constinit std::array<Once, 16> copies{};
constinit std::mutex mutex;

/// What nobody uses gives way.
Once* unused() {
  const auto found = std::ranges::find_if(copies, [](const Once& copy) { return copy.users == 0; });
  if (found == copies.end()) return nullptr;
  found->end();
  return &*found;
}

std::uint64_t in_use() {
  std::uint64_t sum = 0;
  for (const Once& copy : copies)
    if (copy.is_open()) sum += copy.size();
  return sum;
}

}  // namespace

Once* attach(const struct stat& status) {
  const std::scoped_lock lock(mutex);
  for (Once& copy : copies)
    if (copy.is(status)) return ++copy.users, &copy;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  while (in_use() + size > memory::limit()) {
    const auto old = std::ranges::find_if(copies, [](const Once& copy) { return copy.is_open() && copy.users == 0; });
    if (old == copies.end()) return nullptr;
    old->end();
  }
  Once* copy = size == 0 || !is_room_for(size) ? nullptr : unused();
  if (copy == nullptr || !copy->begin(status)) return nullptr;
  copy->users = 1;
  return copy;
}

void detach(Once& copy) {
  const std::scoped_lock lock(mutex);
  --copy.users;
}

long read(Once& copy, int descriptor, std::span<const iovec> pieces, std::uint64_t offset) {
  if (offset >= copy.size()) return 0;
  const std::uint64_t bytes = std::min(bytes_of(pieces), copy.size() - offset);
  if (!copy.fetch(descriptor, {offset, offset + bytes})) return kPass;
  std::uint64_t done = 0;
  for (const iovec& piece : pieces) {
    const std::uint64_t part = std::min<std::uint64_t>(piece.iov_len, bytes - done);
    if (part != 0) std::memcpy(piece.iov_base, copy.at(offset + done), part);
    done += part;
  }
  return static_cast<long>(bytes);
}

void end() {
  const std::scoped_lock lock(mutex);
  for (Once& copy : copies) copy.end();
}

void forget() {
  new (&mutex) std::mutex;
  for (Once& copy : copies) {
    copy.forget();
    copy.users = 0;
  }
}

}  // namespace once
}  // namespace pario::stream
