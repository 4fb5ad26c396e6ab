/* Numbers printed as text, one a line. Repaired: written as they are. */
#include "counted.h"

enum { STEPS = 20, VALUES = 150000 };

static void print_values(Program* p, FILE* stream, const double* values, long n) {
  for (long i = 0; i < n; i++) {
    const int length = fprintf(stream, "%.17g\n", values[i]);
    if (length < 0) fail("fprintf", p->name);
    p->counts.writes++;
    p->counts.bytes_written += length;
  }
}

int main(int argc, char** argv) {
  Program p;
  begin(&p, "ascii", "stdio", argc, argv);
  const char* path = in_directory(&p, p.repaired ? "ascii.dat" : "ascii.txt");
  const long n = scale(&p, VALUES);
  if (p.prepare) return 0;
  double* values = allocate((size_t)n * sizeof *values);
  FILE* stream = open_stream(&p, path, "w");
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 400);
    for (long i = 0; i < n; i++) values[i] = 1.0 / (double)(step * n + i + 3);
    const double start = now();
    if (p.repaired)
      put(&p, stream, values, (size_t)n * sizeof *values);
    else
      print_values(&p, stream, values, n);
    p.io_seconds += now() - start;
  }
  close_stream(&p, stream);
  return finish(&p, p.counts.writes == (p.repaired ? STEPS : STEPS * n));
}
