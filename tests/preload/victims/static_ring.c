// Reads a file through io_uring: linked with a static liburing, no call of its ring is intercepted.
// usage: static_ring FILE REQUESTS file|exit: closes the file before the ring, or neither
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 4096 };
static char block[BLOCK];

static int read_block(struct io_uring* ring, int file, int number) {
  struct io_uring_cqe* done;
  io_uring_prep_read(io_uring_get_sqe(ring), file, block, BLOCK, (unsigned long)number * BLOCK);
  if (io_uring_submit_and_wait(ring, 1) != 1 || io_uring_peek_cqe(ring, &done) != 0) return -1;
  const int moved = done->res;
  io_uring_cqe_seen(ring, done);
  return moved;
}

int main(int count, char** words) {
  if (count != 4) return 2;
  struct io_uring ring;
  if (io_uring_queue_init(8, &ring, 0) != 0) return 3;
  const int file = open(words[1], O_RDONLY), requests = atoi(words[2]);
  long sum = 0;
  for (int number = 0; number < requests; number++) sum += read_block(&ring, file, number);
  if (words[3][0] == 'f') {
    close(file);
    io_uring_queue_exit(&ring);
  }
  printf("%ld\n", sum);
  return 0;
}
