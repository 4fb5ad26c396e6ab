// io_uring by its system calls alone: only the functions that one thread needs to move pieces.
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <optional>
#include <vector>

#include "instruments/ways/way_run.hpp"

#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>

namespace pario::ways {
namespace {

/// Memory shared with the kernel.
class Shared {
 public:
  Shared() = default;
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() {
    if (ok()) ::munmap(memory_, size_);
  }
  void map(int ring, std::uint64_t size, std::uint64_t offset) {
    memory_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
                     static_cast<off_t>(offset));
    size_ = size;
  }
  bool ok() const { return memory_ != MAP_FAILED; }
  template <class T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(memory_) + offset);
  }

 private:
  void* memory_ = MAP_FAILED;
  std::uint64_t size_ = 0;
};

struct Completion {
  std::uint64_t slot;
  std::int32_t result;
};

/// Requests of one size on one file. The caller keeps at most `entries` of them in flight.
class Ring {
 public:
  /// error() is an errno if the kernel has no io_uring or forbids it.
  explicit Ring(unsigned entries) : ring_(base::system_call(SYS_io_uring_setup, entries, &facts_)) {
    if (!ring_.is_open()) return;
    rings_.map(ring_.number(), rings_size(), IORING_OFF_SQ_RING);
    requests_.map(ring_.number(), facts_.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
  }

  int error() const {
    if (!ring_.is_open()) return -ring_.number();
    if ((facts_.features & IORING_FEAT_SINGLE_MMAP) == 0) return ENOSYS;
    return rings_.ok() && requests_.ok() ? 0 : ENOMEM;
  }

  void add(bool writes, int descriptor, std::byte* data, std::uint32_t size, std::uint64_t place,
           std::uint64_t slot) {
    unsigned& tail = *rings_.at<unsigned>(facts_.sq_off.tail);
    const unsigned index = tail & (facts_.sq_entries - 1);
    io_uring_sqe& request = requests_.at<io_uring_sqe>(0)[index];
    request = {};
    request.opcode = writes ? IORING_OP_WRITE : IORING_OP_READ;
    request.fd = descriptor;
    request.addr = reinterpret_cast<std::uintptr_t>(data);
    request.len = size;
    request.off = place;
    request.user_data = slot;
    rings_.at<unsigned>(facts_.sq_off.array)[index] = index;
    std::atomic_ref(tail).store(tail + 1, std::memory_order_release);
    ++added_;
  }

  /// Submits the added requests and waits until at least one is complete. Returns 0 or an errno.
  int wait() {
    for (;;) {
      const long took = base::system_call(SYS_io_uring_enter, ring_.number(), added_, 1U,
                                          IORING_ENTER_GETEVENTS, nullptr, 0);
      if (took == -EINTR) continue;
      if (took < 0) return static_cast<int>(-took);
      added_ -= static_cast<unsigned>(took);
      return 0;
    }
  }

  std::optional<Completion> take_completion() {
    unsigned& head = *rings_.at<unsigned>(facts_.cq_off.head);
    const unsigned tail =
        std::atomic_ref(*rings_.at<unsigned>(facts_.cq_off.tail)).load(std::memory_order_acquire);
    if (head == tail) return {};
    const io_uring_cqe& entry =
        rings_.at<io_uring_cqe>(facts_.cq_off.cqes)[head & (facts_.cq_entries - 1)];
    const Completion done{entry.user_data, entry.res};
    std::atomic_ref(head).store(head + 1, std::memory_order_release);
    return done;
  }

 private:
  std::uint64_t rings_size() const {
    return std::max<std::uint64_t>(facts_.sq_off.array + facts_.sq_entries * sizeof(unsigned),
                                   facts_.cq_off.cqes + facts_.cq_entries * sizeof(io_uring_cqe));
  }

  io_uring_params facts_{};
  base::RawDescriptor ring_;
  Shared rings_, requests_;
  unsigned added_ = 0;
};

/// The requests of a run that are in flight; each has a piece of the run's memory and a place.
class Traffic {
 public:
  Traffic(WayRun& run, int descriptor, Ring& ring)
      : run_(run), descriptor_(descriptor), ring_(ring), places_(run.way.at_a_time) {}

  /// Starts a request with a piece of memory. False: no place is left.
  bool begin(std::uint64_t slot) {
    const auto place = run_.places.next();
    if (!place) return false;
    places_[slot] = *place;
    if (run_.work.writes) WayRun::sign(run_.piece(slot), *place);
    ring_.add(run_.work.writes, descriptor_, run_.piece(slot),
              static_cast<std::uint32_t>(run_.work.piece), *place, slot);
    ++in_flight_;
    return true;
  }

  base::Status end(const Completion& done) {
    --in_flight_;
    const std::uint64_t place = places_[done.slot];
    if (done.result != static_cast<std::int32_t>(run_.work.piece))
      return run_.error("io_uring", done.result < 0 ? -done.result : EIO, place);
    if (!run_.work.writes) run_.verify(run_.piece(done.slot), place);
    return {};
  }

  unsigned in_flight() const { return in_flight_; }

 private:
  WayRun& run_;
  int descriptor_;
  Ring& ring_;
  std::vector<std::uint64_t> places_;
  unsigned in_flight_ = 0;
};

}  // namespace

base::Status move_by_ring(WayRun& run, int descriptor) {
  Ring ring(run.way.at_a_time);
  if (const int number = ring.error()) return run.error("io_uring_setup", number);
  Traffic traffic(run, descriptor, ring);
  for (std::uint32_t slot = 0; slot < run.way.at_a_time && traffic.begin(slot); ++slot) {
  }
  base::Status status;
  while (traffic.in_flight() > 0) {
    if (const int number = ring.wait()) return run.error("io_uring_enter", number);
    while (const auto done = ring.take_completion()) {
      base::Status ended = traffic.end(*done);
      if (!ended.ok() && status.ok()) status = std::move(ended);
      if (status.ok()) traffic.begin(done->slot);
    }
  }
  return status;
}

}  // namespace pario::ways

#else

namespace pario::ways {
base::Status move_by_ring(WayRun& run, int) { return run.error("io_uring_setup", ENOSYS); }
}  // namespace pario::ways

#endif
