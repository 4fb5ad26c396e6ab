/* Healthy: a computation that reads a small parameter file and prints a line every now and then. */
#include "counted.h"

enum { STEPS = 50, SIZE = 2000 };

int main(int argc, char** argv) {
  Program p;
  begin(&p, "healthy_compute", "stdio", argc, argv);
  make_file(&p, in_directory(&p, "healthy_compute.in"), SIZE);
  if (p.prepare) return 0;
  char parameters[SIZE];
  FILE *in = open_stream(&p, in_directory(&p, "healthy_compute.in"), "r"),
       *log = open_stream(&p, in_directory(&p, "healthy_compute.log"), "w");
  const size_t got = fread(parameters, 1, SIZE, in);
  p.counts.reads++;
  p.counts.bytes_read += (long)got;
  close_stream(&p, in);
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 160);
    char line[64];
    put(&p, log, line, (size_t)snprintf(line, sizeof line, "step %d of %d\n", step + 1, STEPS));
  }
  close_stream(&p, log);
  return finish(&p, got == SIZE);
}
