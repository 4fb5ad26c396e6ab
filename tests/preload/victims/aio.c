// Asynchronous I/O in known numbers, by libaio or io_uring. Usage: aio libaio|uring|fixed|raw FILE.
// Writes 32 blocks of 4096 bytes, 8 at a time, reads them back in reverse order, and prints a sum.
#define _GNU_SOURCE
#include <fcntl.h>
#include <libaio.h>
#include <liburing.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK(condition)  \
  do {                    \
    if (!(condition)) {   \
      perror(#condition); \
      abort();            \
    }                     \
  } while (0)

enum { kBlock = 4096, kBlocks = 32, kDepth = 8 };
static unsigned char blocks[kBlocks][kBlock];

static void fill(void) {
  for (int i = 0; i < kBlocks; ++i)
    for (int j = 0; j < kBlock; ++j) blocks[i][j] = (unsigned char)(i * 31 + j * 7);
}

static unsigned long sum(void) {
  unsigned long total = 0;
  for (int i = 0; i < kBlocks; ++i)
    for (int j = 0; j < kBlock; ++j) total = total * 31 + blocks[i][j];
  return total;
}

static void by_libaio(int fd, int writes) {
  io_context_t context = 0;
  struct iocb requests[kDepth], *pointers[kDepth];
  struct io_event events[kDepth];
  CHECK(io_setup(kDepth, &context) == 0);
  for (int first = 0; first < kBlocks; first += kDepth) {
    for (int i = 0; i < kDepth; ++i) {
      const int block = writes ? first + i : kBlocks - 1 - first - i;
      const long long offset = (long long)block * kBlock;
      if (writes)
        io_prep_pwrite(&requests[i], fd, blocks[block], kBlock, offset);
      else
        io_prep_pread(&requests[i], fd, blocks[block], kBlock, offset);
      pointers[i] = &requests[i];
    }
    CHECK(io_submit(context, kDepth, pointers) == kDepth);
    for (int done = 0; done < kDepth;) {
      const int more = io_getevents(context, 1, kDepth, events, NULL);
      CHECK(more > 0);
      for (int i = 0; i < more; ++i) CHECK(events[i].res == kBlock);
      done += more;
    }
  }
  CHECK(io_destroy(context) == 0);
}

static void by_uring(int fd, int writes, int fixed) {
  struct io_uring ring;
  CHECK(io_uring_queue_init(kDepth, &ring, 0) == 0);
  if (fixed) CHECK(io_uring_register_files(&ring, &fd, 1) == 0);
  for (int first = 0; first < kBlocks; first += kDepth) {
    for (int i = 0; i < kDepth; ++i) {
      const int block = writes ? first + i : kBlocks - 1 - first - i;
      struct io_uring_sqe* entry = io_uring_get_sqe(&ring);
      const unsigned long long offset = (unsigned long long)block * kBlock;
      if (writes)
        io_uring_prep_write(entry, fixed ? 0 : fd, blocks[block], kBlock, offset);
      else
        io_uring_prep_read(entry, fixed ? 0 : fd, blocks[block], kBlock, offset);
      if (fixed) entry->flags |= IOSQE_FIXED_FILE;
    }
    CHECK(io_uring_submit(&ring) == kDepth);
    for (int done = 0; done < kDepth; ++done) {
      struct io_uring_cqe* entry;
      CHECK(io_uring_wait_cqe(&ring, &entry) == 0 && entry->res == kBlock);
      io_uring_cqe_seen(&ring, entry);
    }
  }
  if (writes) {
    struct io_uring_sqe* entry = io_uring_get_sqe(&ring);
    struct io_uring_cqe* end;
    io_uring_prep_fsync(entry, fixed ? 0 : fd, IORING_FSYNC_DATASYNC);
    if (fixed) entry->flags |= IOSQE_FIXED_FILE;
    CHECK(io_uring_submit_and_wait(&ring, 1) == 1);
    CHECK(io_uring_wait_cqe(&ring, &end) == 0 && end->res == 0);
    io_uring_cqe_seen(&ring, end);
  }
  io_uring_queue_exit(&ring);
}

/// Returns the address of a word in a ring's memory.
static unsigned* word(void* memory, unsigned offset) { return (unsigned*)((char*)memory + offset); }

/// io_uring without liburing: by syscall() and mmap, as many programs use it; or, with `by_hand`,
/// with an instruction for the entry, which no library can intercept.
static void by_raw_ring(int fd, int writes, int by_hand) {
  struct io_uring_params facts;
  memset(&facts, 0, sizeof facts);
  const int ring = (int)syscall(SYS_io_uring_setup, kDepth, &facts);
  CHECK(ring >= 0 && (facts.features & IORING_FEAT_SINGLE_MMAP) != 0);
  const size_t size = facts.cq_off.cqes + facts.cq_entries * sizeof(struct io_uring_cqe);
  const int access = PROT_READ | PROT_WRITE, how = MAP_SHARED | MAP_POPULATE;
  void* memory = mmap(NULL, size, access, how, ring, IORING_OFF_SQ_RING);
  struct io_uring_sqe* entries =
      mmap(NULL, facts.sq_entries * sizeof *entries, access, how, ring, IORING_OFF_SQES);
  CHECK(memory != MAP_FAILED && entries != MAP_FAILED);
  for (int first = 0; first < kBlocks; first += kDepth) {
    unsigned* tail = word(memory, facts.sq_off.tail);
    for (int i = 0; i < kDepth; ++i) {
      const int block = writes ? first + i : kBlocks - 1 - first - i;
      const unsigned index = (*tail + (unsigned)i) & *word(memory, facts.sq_off.ring_mask);
      memset(&entries[index], 0, sizeof entries[index]);
      entries[index].opcode = writes ? IORING_OP_WRITE : IORING_OP_READ;
      entries[index].fd = fd;
      entries[index].addr = (uintptr_t)blocks[block];
      entries[index].len = kBlock;
      entries[index].off = (uint64_t)block * kBlock;
      word(memory, facts.sq_off.array)[index] = index;
    }
    __atomic_store_n(tail, *tail + kDepth, __ATOMIC_RELEASE);
    long entered = -1;
#ifdef __x86_64__
    if (by_hand) {
      register long flags __asm__("r10") = IORING_ENTER_GETEVENTS;
      register long mask __asm__("r8") = 0, bytes __asm__("r9") = 0;
      __asm__ volatile("syscall"
                       : "=a"(entered)
                       : "a"(SYS_io_uring_enter), "D"((long)ring), "S"((long)kDepth),
                         "d"((long)kDepth), "r"(flags), "r"(mask), "r"(bytes)
                       : "rcx", "r11", "memory");
    } else
#endif
      entered = syscall(SYS_io_uring_enter, ring, kDepth, kDepth, IORING_ENTER_GETEVENTS, NULL, 0);
    CHECK(entered == kDepth);
    unsigned* head = word(memory, facts.cq_off.head);
    __atomic_store_n(head, *head + kDepth, __ATOMIC_RELEASE);
  }
  CHECK(munmap(entries, facts.sq_entries * sizeof *entries) == 0 && munmap(memory, size) == 0);
  close(ring);
}

static void move(const char* how, int fd, int writes) {
  if (strcmp(how, "libaio") == 0)
    by_libaio(fd, writes);
  else if (strcmp(how, "raw") == 0 || strcmp(how, "hand") == 0)
    by_raw_ring(fd, writes, strcmp(how, "hand") == 0);
  else
    by_uring(fd, writes, strcmp(how, "fixed") == 0);
}

int main(int count, char** words) {
  CHECK(count == 3);
  fill();
  const unsigned long before = sum();
  const int fd = open(words[2], O_RDWR | O_CREAT | O_TRUNC, 0644);
  CHECK(fd >= 0);
  move(words[1], fd, 1);
  memset(blocks, 0, sizeof blocks);
  move(words[1], fd, 0);
  CHECK(sum() == before && close(fd) == 0);
  printf("%lu\n", before);
  return 0;
}
