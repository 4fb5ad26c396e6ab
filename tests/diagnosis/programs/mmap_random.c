/* Looks values up at random in a mapped table that is not in memory. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "work.h"

static unsigned char* load(int fd, size_t bytes) {
  unsigned char* table = malloc(bytes);
  for (size_t at = 0; at < bytes;) {
    const ssize_t n = read(fd, table + at, bytes - at);
    if (n <= 0) break;
    at += (size_t)n;
  }
  return table;
}

int main(int argc, char** argv) {
  const size_t lookups = (size_t)read_size(argc, argv);
  struct stat s;
  const int fd = open("table.bin", O_RDONLY);
  if (fd < 0 || fstat(fd, &s)) return perror("table.bin"), 1;
  const size_t bytes = (size_t)s.st_size;
  const unsigned char* table;
  if (is_repaired(argc, argv)) {
    table = load(fd, bytes);
  } else {
    table = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    madvise((void*)table, bytes, MADV_RANDOM);
  }
  unsigned long sum = 0;
  for (size_t i = 0; i < lookups; i++) sum += table[pick(i, bytes / 4096) * 4096];
  close(fd);
  compute(1500);
  printf("%zu lookups, sum %lu\n", lookups, sum);
  return 0;
}
