/* Every double of a result written by a separate write. Repaired: a buffer. */
#include <fcntl.h>

#include "counted.h"

enum { STEPS = 20, VALUES = 50000 };

static void write_values(Program* p, int fd, const double* values, long n) {
  if (p->repaired)
    write_next(p, fd, values, (size_t)n * sizeof *values);
  else
    for (long i = 0; i < n; i++) write_next(p, fd, &values[i], sizeof values[i]);
}

int main(int argc, char** argv) {
  Program p;
  begin(&p, "write_per_value", "posix", argc, argv);
  const char* path = in_directory(&p, "write_per_value.dat");
  const long n = scale(&p, VALUES);
  make_file(&p, path, STEPS * (size_t)n * sizeof(double));
  if (p.prepare) return 0;
  double* values = allocate((size_t)n * sizeof *values);
  const int fd = open_file(&p, path, O_WRONLY);
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 400);
    for (long i = 0; i < n; i++) values[i] = (double)(step * n + i);
    const double start = now();
    write_values(&p, fd, values, n);
    p.io_seconds += now() - start;
  }
  close_file(&p, fd);
  return finish(&p, p.counts.bytes_written == STEPS * n * (long)sizeof(double));
}
