#include "observe/preload/rings.hpp"

#include <sys/uio.h>

#include <algorithm>

#include "core/base/base.hpp"
#include "observe/preload/ring_requests.hpp"

namespace pario::preload::rings {
namespace {

constinit Pool<Ring, 256> pool{};

std::uint64_t key_of(int descriptor) { return static_cast<std::uint64_t>(descriptor) + 1; }

std::uint32_t load(const unsigned* word) {
  return std::atomic_ref(*const_cast<unsigned*>(word)).load(std::memory_order_acquire);
}

/// Reads a word of memory that may be unmapped; false: it is.
bool try_load(const unsigned* word, std::uint32_t& out) {
  iovec local{&out, sizeof out}, remote{const_cast<unsigned*>(word), sizeof out};
  const long self = base::system_call(SYS_getpid);
  return base::system_call(SYS_process_vm_readv, self, &local, 1, &remote, 1, 0) ==
         static_cast<long>(sizeof out);
}

const io_uring_sqe& submission(const Ring& ring, std::uint32_t number) {
  const Memory& memory = ring.memory;
  const std::uint32_t at = number & memory.submission_mask;
  const std::uint32_t index = memory.submission_array == nullptr ? at : memory.submission_array[at];
  const std::size_t size = (ring.facts.flags & IORING_SETUP_SQE128) != 0 ? 128 : 64;
  return *reinterpret_cast<const io_uring_sqe*>(memory.submissions +
                                                (index & memory.submission_mask) * size);
}

const io_uring_cqe& completion(const Ring& ring, std::uint32_t number) {
  const std::size_t size = (ring.facts.flags & IORING_SETUP_CQE32) != 0 ? 32 : 16;
  return *reinterpret_cast<const io_uring_cqe*>(ring.memory.completions +
                                                (number & ring.memory.completion_mask) * size);
}

void count_unattributed(std::uint32_t requests) {
  if (requests != 0) trace::add(&trace::Process::uring_unattributed, requests);
}

void read_submission(Ring& ring, std::uint32_t number, std::uint64_t now, RequestFiles& files) {
  const bool polled = (ring.facts.flags & IORING_SETUP_SQPOLL) != 0;
  const bool taken = static_cast<std::int32_t>(number - load(ring.memory.submission_head)) < 0;
  const io_uring_sqe& entry = submission(ring, number);
  Request request;
  const Meaning meaning = interpret(ring, entry, !polled && !taken, now, request);
  if (meaning == Meaning::unknown) count_unattributed(1);
  if (meaning != Meaning::request) return;
  files.add(request.record);
  ring.last = request.record;
  trace::begin_request(request.record);
  if ((entry.flags & IOSQE_CQE_SKIP_SUCCESS) != 0)  // nothing will show its end
    return complete(ring, request, static_cast<std::int32_t>(request.asked), now);
  if (!ring.requests.add(request)) {
    trace::withdraw_request(request.record);
    count_unattributed(1);
  }
}

void read_submissions(Ring& ring, std::uint32_t tail, std::uint64_t now, RequestFiles& files) {
  std::uint32_t next = ring.submissions_seen;
  const std::uint32_t entries = ring.memory.submission_mask + 1;
  if (tail - next > entries) {  // overwritten meanwhile
    count_unattributed(tail - next - entries);
    next = tail - entries;
  }
  for (; next != tail; ++next) read_submission(ring, next, now, files);
  ring.submissions_seen = tail;
}

void read_completions(Ring& ring, std::uint64_t now, RequestFiles* files) {
  const std::uint32_t tail = load(ring.memory.completion_tail);
  const std::uint32_t entries = ring.memory.completion_mask + 1;
  std::uint32_t next = ring.completions_seen;
  if (tail - next > entries) next = tail - entries;
  Request request;
  for (; next != tail; ++next) {
    const io_uring_cqe& entry = completion(ring, next);
    if (!ring.requests.take(entry.user_data, request)) continue;
    complete(ring, request, entry.res, now);
    if (files != nullptr) files->add(request.record);
  }
  ring.completions_seen = tail;
}

/// Counts the requests that the kernel has taken without a call of the program that the tracer saw.
void count_unseen(Ring& ring) {
  std::uint32_t submitted = 0;
  if (!ring.memory.is_complete() || !try_load(ring.memory.submission_head, submitted)) return;
  read_completions(ring, trace::ticks(), nullptr);
  const auto unseen = static_cast<std::int32_t>(submitted - ring.submissions_seen);
  if (unseen <= 0) return;
  count_unattributed(static_cast<std::uint32_t>(unseen));
  ring.submissions_seen = submitted;
}

template <class T>
const T* at(const void* address, std::uint32_t offset) {
  return reinterpret_cast<const T*>(static_cast<const std::byte*>(address) + offset);
}

void set_submission_queue(Ring& ring, const void* address) {
  const io_sqring_offsets& offsets = ring.facts.sq_off;
  ring.memory.submission_head = at<unsigned>(address, offsets.head);
  ring.memory.submission_tail = at<unsigned>(address, offsets.tail);
  constexpr std::uint32_t kNoArray = 1U << 16;  // IORING_SETUP_NO_SQARRAY
  if ((ring.facts.flags & kNoArray) == 0)
    ring.memory.submission_array = at<unsigned>(address, offsets.array);
  ring.memory.submission_mask = ring.facts.sq_entries - 1;
}

void set_completion_queue(Ring& ring, const void* address) {
  const io_cqring_offsets& offsets = ring.facts.cq_off;
  ring.memory.completion_tail = at<unsigned>(address, offsets.tail);
  ring.memory.completions = at<std::byte>(address, offsets.cqes);
  ring.memory.completion_mask = ring.facts.cq_entries - 1;
}

bool contains(const Memory& memory, const void* address) {
  return static_cast<const void*>(memory.submissions) == address ||
         (memory.submission_head != nullptr &&
          (reinterpret_cast<std::uintptr_t>(memory.submission_head) & ~std::uintptr_t{4095}) ==
              reinterpret_cast<std::uintptr_t>(address));
}

}  // namespace

bool is_known(int descriptor) { return pool.find(key_of(descriptor)) != nullptr; }

Ring* find(int descriptor) {
  if (pool.is_empty()) return nullptr;
  if (Ring* ring = pool.find(key_of(descriptor))) return ring;
  Ring* only = nullptr;
  int count = 0;
  pool.for_each([&](Ring& ring) { only = &ring, ++count; });
  const bool is_descriptor = base::system_call(SYS_fcntl, descriptor, 1 /* F_GETFD */) >= 0;
  return count == 1 && !is_descriptor ? only : nullptr;
}

Ring* begin(int descriptor, const io_uring_params& facts) {
  if (Ring* old = pool.find(key_of(descriptor))) end(*old);
  trace::add(&trace::Process::uring_rings, 1);
  Ring* ring = pool.claim(key_of(descriptor));
  if (ring == nullptr) return nullptr;
  const base::SpinLock lock(ring->lock);
  ring->facts = facts;
  ring->memory = {};
  ring->submissions_seen = ring->completions_seen = 0;
  ring->requests.begin(std::max(facts.sq_entries, facts.cq_entries));
  ring->last = nullptr;
  return ring;
}

void add_mapping(int descriptor, const void* address, std::uint64_t offset) {
  Ring* ring = pool.is_empty() ? nullptr : pool.find(key_of(descriptor));
  if (ring == nullptr) return;
  const base::SpinLock lock(ring->lock);
  if (offset == IORING_OFF_SQ_RING) set_submission_queue(*ring, address);
  if (offset == IORING_OFF_CQ_RING ||
      (offset == IORING_OFF_SQ_RING && (ring->facts.features & IORING_FEAT_SINGLE_MMAP) != 0))
    set_completion_queue(*ring, address);
  if (offset == IORING_OFF_SQES) ring->memory.submissions = at<std::byte>(address, 0);
}

void end(Ring& ring) {
  {
    const base::SpinLock lock(ring.lock);
    count_unseen(ring);
    ring.memory = {};
  }
  unregister_files(ring);
  pool.release(ring);
}

void end_mapping(const void* address) {
  if (pool.is_empty()) return;
  pool.for_each([&](Ring& ring) {
    if (contains(ring.memory, address)) end(ring);
  });
}

void end_descriptor(int descriptor) {
  Ring* ring = pool.is_empty() ? nullptr : pool.find(key_of(descriptor));
  if (ring != nullptr) end(*ring);
}

void count_all_unseen() {
  if (pool.is_empty()) return;
  pool.for_each([](Ring& ring) {
    const base::SpinLock lock(ring.lock);
    count_unseen(ring);
  });
}

void forget_all() { pool.forget_all(); }

void read_before(Ring& ring, std::uint32_t tail, bool waits, RequestFiles& files) {
  const base::SpinLock lock(ring.lock);
  if (!ring.memory.is_complete()) return;
  const std::uint64_t now = trace::ticks();
  read_completions(ring, now, waits ? &files : nullptr);
  read_submissions(ring, tail, now, files);
}

void read_after(Ring& ring, bool waits, RequestFiles& files) {
  const base::SpinLock lock(ring.lock);
  if (!ring.memory.is_complete()) return;
  read_completions(ring, trace::ticks(), &files);
  if (waits && files.is_empty() && !ring.requests.is_empty()) files.add(ring.last);
}

}  // namespace pario::preload::rings
