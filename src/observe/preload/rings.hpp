// The rings of io_uring: memory that the program shares with the kernel. The tracer reads
// submissions before a call enters the kernel, and completions afterwards; no entry is changed.
//
// Not seen: requests of a program that enters the kernel by the system call's instruction itself.
// The kernel's count of submissions in the ring's memory shows how many these are
// (process.uring_unattributed). Rings that are set up so, too: unseen_rings.hpp. With a polling
// thread of the kernel, entries are read at the program's next call.
#pragma once

#include <linux/io_uring.h>

#include <cstdint>

#include "observe/preload/requests.hpp"

namespace pario::preload::rings {

/// The addresses of a ring's memory; all are null until the ring is mapped.
struct Memory {
  const unsigned* submission_head = nullptr;
  const unsigned* submission_tail = nullptr;
  const unsigned* submission_array = nullptr;  // null: entries are in the order of the tail
  const unsigned* completion_tail = nullptr;
  const std::byte* submissions = nullptr;
  const std::byte* completions = nullptr;
  std::uint32_t submission_mask = 0, completion_mask = 0;
  bool is_complete() const {
    return submission_tail != nullptr && completion_tail != nullptr && submissions != nullptr;
  }
};

/// A file registered with a ring.
struct RegisteredFile {
  trace::Record* record;
  std::uint64_t open_flags;
};

struct Ring {
  std::uint64_t key;  ///< descriptor plus one
  std::uint64_t lock;
  io_uring_params facts;
  Memory memory;
  std::uint32_t submissions_seen, completions_seen;
  RequestTable requests;
  RegisteredFile* registered;  ///< null before the first registration
  trace::Record* last;         ///< the file of the last request
};

/// True if the tracer has seen the set-up of a descriptor's ring.
bool is_known(int descriptor);
/// The ring of a descriptor; null: none. A number that is no descriptor (a registered ring) means
/// the process's only ring.
Ring* find(int descriptor);
/// Begins a ring that has just been set up; null: there are too many.
Ring* begin(int descriptor, const io_uring_params& facts);
/// Completes the addresses when the program maps a ring's memory at `address`.
void add_mapping(int descriptor, const void* address, std::uint64_t offset);
/// Ends a ring, before its memory is unmapped or its descriptor closed.
void end(Ring& ring);
void end_mapping(const void* address);
void end_descriptor(int descriptor);
/// Counts the requests that the tracer has not seen, at the end of the process. The memory of a
/// ring may be unmapped.
void count_all_unseen();
/// In the child of a fork, which does not use its parent's rings.
void forget_all();

/// Reads the completions since the last look, and the submissions up to `tail`, before a call.
/// The files of the submissions are added to `files`, and for a call that waits those of the
/// completions, which came after the program last looked for them. Locks the ring.
void read_before(Ring& ring, std::uint32_t tail, bool waits, RequestFiles& files);
/// Reads the completions after a call; if it found none and `waits`, adds the file of the last
/// request.
void read_after(Ring& ring, bool waits, RequestFiles& files);

/// Keeps the files that a program registers, from place `first` on; -1: none.
void register_files(Ring& ring, std::uint32_t first, const int* descriptors, std::uint32_t count);
void unregister_files(Ring& ring);

}  // namespace pario::preload::rings
