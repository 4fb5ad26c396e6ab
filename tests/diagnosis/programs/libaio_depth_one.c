/* Reads blocks at random through libaio with one request at a time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libaio.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "work.h"

enum { BLOCK = 4096, DEPTH = 64 };

int main(int argc, char** argv) {
  const size_t reads = (size_t)read_size(argc, argv);
  const size_t depth = is_repaired(argc, argv) ? DEPTH : 1;
  io_context_t context = 0;
  struct stat s;
  const int fd = open("volume.bin", O_RDONLY | O_DIRECT);
  if (fd < 0 || fstat(fd, &s) || io_setup(DEPTH, &context)) return perror("setup"), 1;
  const size_t blocks = (size_t)s.st_size / BLOCK;
  unsigned char* memory = aligned_alloc(BLOCK, DEPTH * BLOCK);
  unsigned long sum = 0;
  for (size_t done = 0; done < reads; done += depth) {
    const size_t n = reads - done < depth ? reads - done : depth;
    struct iocb requests[DEPTH], *queue[DEPTH];
    struct io_event events[DEPTH];
    for (size_t i = 0; i < n; i++) {
      queue[i] = &requests[i];
      io_prep_pread(queue[i], fd, memory + i * BLOCK, BLOCK,
                    (long long)(pick(done + i, blocks) * BLOCK));
    }
    io_submit(context, (long)n, queue);
    io_getevents(context, (long)n, (long)n, events, NULL);
    for (size_t i = 0; i < n; i++) sum += memory[i * BLOCK];
  }
  io_destroy(context);
  close(fd);
  compute(1500);
  printf("%zu reads, sum %lu\n", reads, sum);
  return 0;
}
