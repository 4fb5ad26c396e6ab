/* Writes each record of 24 bytes with a request of io_uring, 32 of them per submission. */
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { RECORD = 24, DEPTH = 32, BLOCK = 65536 * RECORD };

int main(int argc, char** argv) {
  const size_t size = (size_t)read_size(argc, argv) * RECORD;
  const size_t each = is_repaired(argc, argv) ? BLOCK : RECORD;
  char* memory = malloc(size);
  struct io_uring ring;
  const int fd = open("records.bin", O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (fd < 0 || io_uring_queue_init(DEPTH, &ring, 0)) return perror("setup"), 1;
  memset(memory, 'r', size);
  for (size_t done = 0; done < size;) {
    unsigned requests = 0;
    for (; requests < DEPTH && done < size; requests++) {
      const size_t length = size - done < each ? size - done : each;
      io_uring_prep_write(io_uring_get_sqe(&ring), fd, memory + done, (unsigned)length, done);
      done += length;
    }
    io_uring_submit_and_wait(&ring, requests);
    for (unsigned i = 0; i < requests; i++) {
      struct io_uring_cqe* completion;
      io_uring_wait_cqe(&ring, &completion);
      if (completion->res < RECORD) return fprintf(stderr, "result %d\n", completion->res), 1;
      io_uring_cqe_seen(&ring, completion);
    }
  }
  io_uring_queue_exit(&ring);
  close(fd);
  compute(1500);
  printf("%zu bytes\n", size);
  return 0;
}
