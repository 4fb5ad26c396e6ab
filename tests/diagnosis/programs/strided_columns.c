/* Writes a matrix column by column into a file of rows, one element per call. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { COLUMNS = 100 };

int main(int argc, char** argv) {
  const long rows = read_size(argc, argv);
  const size_t row = COLUMNS * sizeof(double);
  double* matrix = malloc((size_t)rows * row);
  for (long i = 0; i < rows * COLUMNS; i++) matrix[i] = (double)(i % 1000);
  const int fd = open("matrix.bin", O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (fd < 0) return perror("matrix.bin"), 1;
  if (is_repaired(argc, argv)) {
    if (write(fd, matrix, (size_t)rows * row) < 0) return perror("write"), 1;
  } else {
    for (long x = 0; x < COLUMNS; x++)
      for (long y = 0; y < rows; y++)
        if (pwrite(fd, matrix + y * COLUMNS + x, sizeof(double),
                   y * (long)row + x * (long)sizeof(double)) < 0)
          return perror("pwrite"), 1;
  }
  close(fd);
  compute(1500);
  printf("%ld rows\n", rows);
  return 0;
}
