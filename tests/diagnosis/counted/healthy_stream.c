/* Healthy: one process that writes and reads large files in blocks of 4 MiB, and computes. */
#include <fcntl.h>

#include "counted.h"

enum { STEPS = 20, BLOCKS = 4, BLOCK = 4 << 20 };

int main(int argc, char** argv) {
  Program p;
  begin(&p, "healthy_stream", "posix", argc, argv);
  const char *in = in_directory(&p, "healthy_stream.in"),
             *out = in_directory(&p, "healthy_stream.out");
  make_file(&p, in, (size_t)STEPS * BLOCKS * BLOCK);
  make_file(&p, out, (size_t)STEPS * BLOCKS * BLOCK);
  if (p.prepare) return 0;
  char* block = allocate(BLOCK);
  const int from = open_file(&p, in, O_RDONLY), to = open_file(&p, out, O_WRONLY);
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 400);
    const double start = now();
    for (int i = 0; i < BLOCKS; i++) {
      read_next(&p, from, block, BLOCK);
      write_next(&p, to, block, BLOCK);
    }
    p.io_seconds += now() - start;
  }
  close_file(&p, from);
  close_file(&p, to);
  return finish(&p, p.counts.bytes_written == (long)STEPS * BLOCKS * BLOCK);
}
