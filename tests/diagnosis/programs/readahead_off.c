/* Scans a file in order after telling the kernel that access will be random. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { PAGE = 4096, BLOCK = 4 << 20 };

int main(int argc, char** argv) {
  const long pages = read_size(argc, argv);
  const int repaired = is_repaired(argc, argv);
  const size_t each = repaired ? BLOCK : PAGE;
  unsigned char* block = malloc(BLOCK);
  unsigned long sum = 0;
  const int fd = open("scan.bin", O_RDONLY);
  if (fd < 0) return perror("scan.bin"), 1;
  posix_fadvise(fd, 0, 0, repaired ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_RANDOM);
  for (long done = 0; done < pages;) {
    const ssize_t n = read(fd, block, each);
    if (n <= 0) break;
    for (ssize_t at = 0; at < n && done < pages; at += PAGE, done++) sum += block[at];
  }
  close(fd);
  compute(1500);
  printf("%ld pages, sum %lu\n", pages, sum);
  return 0;
}
