/* Copies a file within the kernel, 512 bytes at a time. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "work.h"

int main(int argc, char** argv) {
  const size_t block = is_repaired(argc, argv) ? 1 << 20 : 512;
  const int in = open("source.dat", O_RDONLY);
  const int out = open("copy.dat", O_CREAT | O_TRUNC | O_WRONLY, 0644);
  off_t at = 0;
  ssize_t moved;
  do moved = sendfile(out, in, &at, block);
  while (moved > 0);
  compute(1500);
  printf("%ld bytes\n", (long)at);
  return moved < 0;
}
