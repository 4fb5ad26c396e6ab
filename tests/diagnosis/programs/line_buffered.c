/* Writes a table of residuals line by line to a stream that is line-buffered like a terminal. */
#include <stdio.h>

#include "work.h"

int main(int argc, char** argv) {
  const long rows = read_size(argc, argv);
  FILE* out = fopen("residuals.txt", "w");
  if (!out) return perror("residuals.txt"), 1;
  setvbuf(out, NULL, is_repaired(argc, argv) ? _IOFBF : _IOLBF, 1 << 16);
  for (long i = 0; i < rows; i++) {
    fputs("iteration done, residual small enough\n", out);
    if (i % (rows / 10 + 1) == 0) compute(150);
  }
  fclose(out);
  printf("%ld rows\n", rows);
  return 0;
}
