/* Copies a file through a buffer of 256 bytes. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

int main(int argc, char** argv) {
  const size_t limit = (size_t)read_size(argc, argv) * 256;
  const size_t each = is_repaired(argc, argv) ? 1 << 20 : 256;
  char* buffer = malloc(each);
  size_t copied = 0;
  const int from = open("original.bin", O_RDONLY),
            to = open("copy.bin", O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (from < 0 || to < 0) return perror("open"), 1;
  for (ssize_t n; copied < limit && (n = read(from, buffer, each)) > 0; copied += (size_t)n)
    if (write(to, buffer, (size_t)n) < 0) return perror("write"), 1;
  close(from);
  close(to);
  compute(1500);
  printf("%zu bytes\n", copied);
  return 0;
}
