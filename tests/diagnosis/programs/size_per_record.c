/* Extends a file to its new size before each record. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { RECORD = 4096, BLOCK = 16 };

int main(int argc, char** argv) {
  const long records = read_size(argc, argv);
  static char block[BLOCK * RECORD];
  memset(block, 'r', sizeof block);
  const int fd = open("records.dat", O_CREAT | O_TRUNC | O_WRONLY, 0644);
  for (long i = 0; i < records; i++) {
    if (!is_repaired(argc, argv))
      for (int part = 1; part <= 4; part++)
        if (ftruncate(fd, i * RECORD + part * (RECORD / 4))) return perror("ftruncate"), 1;
    if (i % BLOCK == BLOCK - 1)
      if (pwrite(fd, block, sizeof block, (i + 1 - BLOCK) * RECORD) < 0) return perror("pwrite"), 1;
  }
  close(fd);
  compute(1500);
  printf("%ld records\n", records);
  return 0;
}
