/* Reads blocks at random through io_uring, but waits for each one before it asks for the next. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "work.h"

enum { BLOCK = 4096, DEPTH = 64 };

int main(int argc, char** argv) {
  const size_t reads = (size_t)read_size(argc, argv);
  const size_t depth = is_repaired(argc, argv) ? DEPTH : 1;
  struct io_uring ring;
  struct stat s;
  const int fd = open("volume.bin", O_RDONLY | O_DIRECT);
  if (fd < 0 || fstat(fd, &s) || io_uring_queue_init(DEPTH, &ring, 0)) return perror("setup"), 1;
  const size_t blocks = (size_t)s.st_size / BLOCK;
  unsigned char* memory = aligned_alloc(BLOCK, DEPTH * BLOCK);
  unsigned long sum = 0;
  for (size_t done = 0; done < reads; done += depth) {
    const size_t n = reads - done < depth ? reads - done : depth;
    for (size_t i = 0; i < n; i++)
      io_uring_prep_read(io_uring_get_sqe(&ring), fd, memory + i * BLOCK, BLOCK,
                         pick(done + i, blocks) * BLOCK);
    io_uring_submit_and_wait(&ring, (unsigned)n);
    for (size_t i = 0; i < n; i++) {
      struct io_uring_cqe* completion;
      io_uring_wait_cqe(&ring, &completion);
      io_uring_cqe_seen(&ring, completion);
      sum += memory[i * BLOCK];
    }
  }
  io_uring_queue_exit(&ring);
  close(fd);
  compute(1500);
  printf("%zu reads, sum %lu\n", reads, sum);
  return 0;
}
