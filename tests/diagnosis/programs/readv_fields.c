/* Reads the three numbers of each particle with a readv of three pieces. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "work.h"

enum { BLOCK = 1 << 16 };

int main(int argc, char** argv) {
  const long wanted = read_size(argc, argv);
  uint64_t id, energy, weight, sum = 0;
  const struct iovec fields[3] = {{&id, 8}, {&energy, 8}, {&weight, 8}};
  const int file = open("particles.bin", O_RDONLY);
  if (file < 0) return perror("particles.bin"), 1;
  if (is_repaired(argc, argv)) {
    uint64_t (*block)[3] = malloc(BLOCK * sizeof *block);
    for (ssize_t n; (n = read(file, block, BLOCK * sizeof *block)) > 0;)
      for (size_t i = 0; i < (size_t)n / sizeof *block; i++) sum += block[i][1] % 1000;
  } else {
    for (long i = 0; i < wanted && readv(file, fields, 3) == 24; i++) sum += energy % 1000;
  }
  close(file);
  compute(1500);
  printf("%ld particles, energy %lu\n", wanted, (unsigned long)sum);
  return 0;
}
