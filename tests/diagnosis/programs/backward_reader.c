/* Walks through a journal from its newest entry to the oldest, one entry per read. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { ENTRY = 256, BLOCK = 1 << 20 };

int main(int argc, char** argv) {
  const long entries = read_size(argc, argv);
  const long each = is_repaired(argc, argv) ? BLOCK : ENTRY;
  unsigned char* block = malloc(BLOCK);
  unsigned long sum = 0;
  const int fd = open("journal.bin", O_RDONLY);
  if (fd < 0) return perror("journal.bin"), 1;
  off_t end = lseek(fd, 0, SEEK_END);
  for (long done = 0; done < entries && end > 0;) {
    const off_t start = end > each ? end - each : 0;
    lseek(fd, start, SEEK_SET);
    const ssize_t n = read(fd, block, (size_t)(end - start));
    for (long at = n - ENTRY; at >= 0 && done < entries; at -= ENTRY, done++)
      sum = sum * 31 + block[at];
    end = start;
  }
  close(fd);
  compute(1500);
  printf("%ld entries, sum %lu\n", entries, sum);
  return 0;
}
