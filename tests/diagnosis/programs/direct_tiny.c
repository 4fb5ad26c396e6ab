/* Writes with O_DIRECT, because it "is faster", in blocks of a sector group. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { BLOCK = 4096, LARGE = 1024 };

int main(int argc, char** argv) {
  const long blocks = read_size(argc, argv);
  const long each = is_repaired(argc, argv) ? LARGE : 1;
  char* memory = aligned_alloc(BLOCK, LARGE * BLOCK);
  memset(memory, 'd', LARGE * BLOCK);
  const int fd = open("direct.bin", O_CREAT | O_TRUNC | O_WRONLY | O_DIRECT, 0644);
  if (fd < 0) return perror("direct.bin"), 1;
  for (long done = 0; done < blocks; done += each) {
    const long n = blocks - done < each ? blocks - done : each;
    if (write(fd, memory, (size_t)n * BLOCK) < 0) return perror("write"), 1;
  }
  close(fd);
  compute(1500);
  printf("%ld blocks\n", blocks);
  return 0;
}
