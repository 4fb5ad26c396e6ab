// Wrappers of liburing's exported functions that enter the kernel, set rings up or register files,
// and the system calls of io_uring made by syscall() (rings.hpp).
#include <signal.h>
#include <sys/syscall.h>

#include "core/base/base.hpp"
#include "observe/preload/rings.hpp"
#include "observe/preload/system_calls.hpp"

using namespace pario::preload;
namespace base = pario::base;
namespace trace = pario::trace;

namespace {

/// The beginning of liburing's struct io_uring, which is the same in all versions of its binary
/// interface.
struct LibraryRing {
  struct {
    unsigned *head, *tail, *mask, *entries, *flags, *dropped, *array;
    std::byte* submissions;
    unsigned next_head, next_tail;
    std::size_t size;
    void* memory;
    unsigned own_mask, own_entries, pad[2];
  } submission;
  struct {
    unsigned *head, *tail, *mask, *entries, *flags, *overflow;
    std::byte* completions;
    std::size_t size;
    void* memory;
    unsigned own_mask, own_entries, pad[2];
  } completion;
  unsigned flags;
  int descriptor;
};

rings::Memory memory_of(const LibraryRing& ring) {
  return {.submission_head = ring.submission.head,
          .submission_tail = ring.submission.tail,
          .submission_array = ring.submission.array,
          .completion_tail = ring.completion.tail,
          .submissions = ring.submission.submissions,
          .completions = ring.completion.completions,
          .submission_mask = *ring.submission.mask,
          .completion_mask = *ring.completion.mask};
}

rings::Ring* begin_ring(const LibraryRing& library) {
  io_uring_params facts{};
  facts.flags = library.flags;
  facts.sq_entries = *library.submission.mask + 1;
  facts.cq_entries = *library.completion.mask + 1;
  rings::Ring* ring = rings::begin(library.descriptor, facts);
  if (ring == nullptr) return nullptr;
  const base::SpinLock lock(ring->lock);
  ring->memory = memory_of(library);
  // Requests from before the tracer knew the ring are not attributed; the kernel has taken none of
  // a new ring.
  ring->completions_seen = *library.completion.tail;
  return ring;
}

rings::Ring* ring_of(const LibraryRing& library) {
  rings::Ring* ring = rings::find(library.descriptor);
  return ring != nullptr ? ring : begin_ring(library);
}

/// Traces a call that may submit requests up to `tail` and wait for completions.
template <class Find, class Real>
auto trace_entry(Symbol symbol, Find find, bool waits, Real real) {
  if (!active()) return real();
  const NestedCalls nested;
  if (!nested.outermost()) return real();
  RequestFiles files;
  rings::Ring* ring = nullptr;
  in_tracer([&] {
    std::uint32_t tail = 0;
    ring = find(tail);
    if (ring != nullptr) rings::read_before(*ring, tail, waits, files);
  });
  return count_call(start_alone(symbol), real, [&](Span span, auto result) {
    if (ring != nullptr) rings::read_after(*ring, waits, files);
    files.count(symbol, span, result < 0);
  });
}

template <class Real>
auto trace_library_entry(Symbol symbol, const LibraryRing* library, bool waits, Real real) {
  const auto find = [&](std::uint32_t& tail) {
    tail = library->submission.next_tail;
    return ring_of(*library);
  };
  return trace_entry(symbol, find, waits, real);
}

template <class Real>
auto trace_kernel_entry(int descriptor, unsigned least, unsigned flags, Real real) {
  const auto find = [&](std::uint32_t& tail) {
    rings::Ring* ring = rings::find(descriptor);
    if (ring != nullptr && ring->memory.is_complete())
      tail = std::atomic_ref(*const_cast<unsigned*>(ring->memory.submission_tail))
                 .load(std::memory_order_acquire);
    return ring;
  };
  const bool waits = (flags & IORING_ENTER_GETEVENTS) != 0 && least != 0;
  return trace_entry(Symbol::io_uring_enter, find, waits, real);
}

/// Traces a call that sets a ring of liburing up.
template <class Real>
int trace_library_setup(Symbol symbol, const LibraryRing* library, Real real) {
  if (!active()) return real();
  const NestedCalls nested;
  const int result = trace_alone(symbol, real);
  if (nested.outermost() && result >= 0) in_tracer([&] { begin_ring(*library); });
  return result;
}

template <class Real>
auto trace_kernel_setup(const io_uring_params* facts, Real real) {
  if (!active()) return real();
  const NestedCalls nested;
  const auto result = trace_alone(Symbol::io_uring_setup, real);
  if (nested.outermost() && result >= 0)
    in_tracer([&] { rings::begin(static_cast<int>(result), *facts); });
  return result;
}

/// Traces a registration; `keep` keeps its files if it succeeds.
template <class Keep, class Real>
auto trace_registration(Symbol symbol, Keep keep, Real real) {
  if (!active()) return real();
  const NestedCalls nested;
  const auto result = trace_alone(symbol, real);
  if (nested.outermost() && result >= 0) in_tracer(keep);
  return result;
}

/// Keeps the files of a registration by the kernel's arguments.
void keep_registration(int descriptor, unsigned operation, const void* argument, unsigned count) {
  rings::Ring* ring = rings::find(descriptor);
  if (ring == nullptr) return;
  struct Update {
    std::uint32_t first, reserved;
    std::uint64_t files, tags;
    std::uint32_t count, reserved2;
  };
  struct Resource {
    std::uint32_t count, flags;
    std::uint64_t reserved, files, tags;
  };
  const auto* update = static_cast<const Update*>(argument);
  const auto* resource = static_cast<const Resource*>(argument);
  switch (operation) {
    case IORING_REGISTER_FILES:
      return rings::register_files(*ring, 0, static_cast<const int*>(argument), count);
    case IORING_REGISTER_FILES2:
      return rings::register_files(*ring, 0, reinterpret_cast<const int*>(resource->files),
                                   resource->count);
    case IORING_REGISTER_FILES_UPDATE:
    case IORING_REGISTER_FILES_UPDATE2:
      return rings::register_files(
          *ring, update->first, reinterpret_cast<const int*>(update->files),
          operation == IORING_REGISTER_FILES_UPDATE ? count : update->count);
    case IORING_UNREGISTER_FILES:
      return rings::unregister_files(*ring);
    default:
      return;
  }
}

void keep_files(const LibraryRing* library, unsigned first, const int* files, unsigned count) {
  if (rings::Ring* ring = ring_of(*library)) rings::register_files(*ring, first, files, count);
}

}  // namespace

namespace pario::preload {

long system_calls::trace_ring(long number, const Words& w) {
  const auto real = [&] { return make_system_call(number, w); };
  const auto descriptor = static_cast<int>(w[0]);
  switch (number) {
    case SYS_io_uring_setup:
      return trace_kernel_setup(reinterpret_cast<const io_uring_params*>(w[1]), real);
    case SYS_io_uring_enter:
      return trace_kernel_entry(descriptor, static_cast<unsigned>(w[2]),
                                static_cast<unsigned>(w[3]), real);
    default:
      return trace_registration(
          Symbol::io_uring_register,
          [&] {
            keep_registration(descriptor, static_cast<unsigned>(w[1]),
                              reinterpret_cast<const void*>(w[2]), static_cast<unsigned>(w[3]));
          },
          real);
  }
}

}  // namespace pario::preload

// One line per function: name, whether it waits, further parameters, arguments.
#define PARIO_LIST(...) __VA_ARGS__
#define ENTRY(name, waits, parameters, arguments)                                            \
  PARIO_WRAP(int, name, LibraryRing* ring PARIO_LIST parameters) {                           \
    return trace_library_entry(Symbol::name, ring, waits,                                    \
                               [&] { return PARIO_REAL(name)(ring PARIO_LIST arguments); }); \
  }
ENTRY(io_uring_submit, false, (), ())
ENTRY(io_uring_submit_and_wait, least != 0, (, unsigned least), (, least))
ENTRY(io_uring_submit_and_get_events, false, (), ())
ENTRY(io_uring_get_events, false, (), ())
ENTRY(io_uring_submit_and_wait_timeout, true,
      (, void** out, unsigned least, void* timeout, sigset_t* mask), (, out, least, timeout, mask))
ENTRY(io_uring_submit_and_wait_min_timeout, true,
      (, void** out, unsigned least, void* timeout, unsigned shortest, sigset_t* mask),
      (, out, least, timeout, shortest, mask))
ENTRY(io_uring_wait_cqes, true, (, void** out, unsigned least, void* timeout, sigset_t* mask),
      (, out, least, timeout, mask))
ENTRY(io_uring_wait_cqes_min_timeout, true,
      (, void** out, unsigned least, void* timeout, unsigned shortest, sigset_t* mask),
      (, out, least, timeout, shortest, mask))
ENTRY(io_uring_wait_cqe_timeout, true, (, void** out, void* timeout), (, out, timeout))
ENTRY(__io_uring_get_cqe, least != 0,
      (, void** out, unsigned submit, unsigned least, sigset_t* mask), (, out, submit, least, mask))
ENTRY(__io_uring_sqring_wait, false, (), ())

PARIO_WRAP(int, io_uring_queue_init, unsigned entries, LibraryRing* ring, unsigned flags) {
  return trace_library_setup(Symbol::io_uring_queue_init, ring,
                             [&] { return PARIO_REAL(io_uring_queue_init)(entries, ring, flags); });
}
PARIO_WRAP(int, io_uring_queue_init_params, unsigned entries, LibraryRing* ring,
           io_uring_params* facts) {
  return trace_library_setup(Symbol::io_uring_queue_init_params, ring, [&] {
    return PARIO_REAL(io_uring_queue_init_params)(entries, ring, facts);
  });
}
PARIO_WRAP(int, io_uring_queue_init_mem, unsigned entries, LibraryRing* ring,
           io_uring_params* facts, void* memory, size_t size) {
  return trace_library_setup(Symbol::io_uring_queue_init_mem, ring, [&] {
    return PARIO_REAL(io_uring_queue_init_mem)(entries, ring, facts, memory, size);
  });
}
PARIO_WRAP(void, io_uring_queue_exit, LibraryRing* ring) {
  const NestedCalls nested;
  if (active()) in_tracer([&] { rings::end_descriptor(ring->descriptor); });
  PARIO_REAL(io_uring_queue_exit)(ring);
}

PARIO_WRAP(int, io_uring_setup, unsigned entries, io_uring_params* facts) {
  return trace_kernel_setup(facts, [&] { return PARIO_REAL(io_uring_setup)(entries, facts); });
}
PARIO_WRAP(int, io_uring_enter, unsigned fd, unsigned submit, unsigned least, unsigned flags,
           sigset_t* mask) {
  return trace_kernel_entry(static_cast<int>(fd), least, flags, [&] {
    return PARIO_REAL(io_uring_enter)(fd, submit, least, flags, mask);
  });
}
PARIO_WRAP(int, io_uring_enter2, unsigned fd, unsigned submit, unsigned least, unsigned flags,
           void* argument, size_t size) {
  return trace_kernel_entry(static_cast<int>(fd), least, flags, [&] {
    return PARIO_REAL(io_uring_enter2)(fd, submit, least, flags, argument, size);
  });
}
PARIO_WRAP(int, io_uring_register, unsigned fd, unsigned operation, const void* argument,
           unsigned count) {
  return trace_registration(
      Symbol::io_uring_register,
      [&] { keep_registration(static_cast<int>(fd), operation, argument, count); },
      [&] { return PARIO_REAL(io_uring_register)(fd, operation, argument, count); });
}

#define REGISTER(name, first, files, count, parameters, arguments)    \
  PARIO_WRAP(int, name, LibraryRing* ring PARIO_LIST parameters) {    \
    return trace_registration(                                        \
        Symbol::name, [&] { keep_files(ring, first, files, count); }, \
        [&] { return PARIO_REAL(name)(ring PARIO_LIST arguments); }); \
  }
REGISTER(io_uring_register_files, 0, files, count, (, const int* files, unsigned count),
         (, files, count))
REGISTER(io_uring_register_files_tags, 0, files, count,
         (, const int* files, const std::uint64_t* tags, unsigned count), (, files, tags, count))
REGISTER(io_uring_register_files_sparse, 0, nullptr, count, (, unsigned count), (, count))
REGISTER(io_uring_register_files_update, first, files, count,
         (, unsigned first, const int* files, unsigned count), (, first, files, count))
REGISTER(io_uring_register_files_update_tag, first, files, count,
         (, unsigned first, const int* files, const std::uint64_t* tags, unsigned count),
         (, first, files, tags, count))
PARIO_WRAP(int, io_uring_unregister_files, LibraryRing* ring) {
  return trace_registration(
      Symbol::io_uring_unregister_files,
      [&] {
        if (rings::Ring* known = rings::find(ring->descriptor)) rings::unregister_files(*known);
      },
      [&] { return PARIO_REAL(io_uring_unregister_files)(ring); });
}
