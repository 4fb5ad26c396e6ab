/* A program that queries the size of its parameter file before every work item. Repaired: once per
 * step. */
#include "counted.h"

enum { STEPS = 20, PIECES = 75000, SIZE = 5000 };

int main(int argc, char** argv) {
  Program p;
  begin(&p, "stat_storm", "posix", argc, argv);
  const char* path = in_directory(&p, "stat_storm.parameters");
  make_file(&p, path, SIZE);
  if (p.prepare) return 0;
  bool right = true;
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 400);
    const long asked = p.repaired ? 1 : scale(&p, PIECES);
    const double start = now();
    for (long i = 0; i < asked; i++) right = right && size_of(&p, path) == SIZE;
    p.io_seconds += now() - start;
  }
  return finish(&p, right);
}
