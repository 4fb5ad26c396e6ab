/* A stream with a buffer smaller than its rows. Repaired: a buffer of 1 MiB. */
#include "counted.h"

enum { STEPS = 20, ROWS = 25000, ROW = 100, TINY = 64, LARGE = 1 << 20 };

int main(int argc, char** argv) {
  static char buffer[LARGE];
  Program p;
  begin(&p, "tiny_buffer", "stdio", argc, argv);
  const char* path = in_directory(&p, "tiny_buffer.dat");
  const long n = scale(&p, ROWS);
  make_file(&p, path, STEPS * (size_t)n * ROW);
  if (p.prepare) return 0;
  char* rows = allocate((size_t)n * ROW);
  FILE* stream = open_stream(&p, path, "r+");
  if (setvbuf(stream, buffer, _IOFBF, p.repaired ? LARGE : TINY) != 0) fail("setvbuf", path);
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 400);
    fill(rows, (size_t)n * ROW, (size_t)(step * n) * ROW);
    const double start = now();
    for (long i = 0; i < n; i++) put(&p, stream, rows + i * ROW, ROW);
    p.io_seconds += now() - start;
  }
  close_stream(&p, stream);
  return finish(&p, p.counts.bytes_written == STEPS * n * ROW);
}
