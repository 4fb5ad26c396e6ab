/* A table that every step reads again from its file. Repaired: read once. */
#include <fcntl.h>

#include "counted.h"

enum { STEPS = 200, TABLE = 32 << 20, BLOCK = 1 << 20 };

static void read_table(Program* p, const char* path, char* table, size_t bytes) {
  const int fd = open_file(p, path, O_RDONLY);
  for (size_t at = 0; at < bytes; at += BLOCK)
    read_next(p, fd, table + at, bytes - at < BLOCK ? bytes - at : BLOCK);
  close_file(p, fd);
}

int main(int argc, char** argv) {
  Program p;
  begin(&p, "reread", "posix", argc, argv);
  const char* path = in_directory(&p, "reread.table");
  const size_t bytes = (size_t)scale(&p, TABLE);
  make_file(&p, path, bytes);
  if (p.prepare) return 0;
  char *table = allocate(bytes), byte;
  bool right = true;
  for (size_t step = 0; step < STEPS; step++) {
    compute(&p, 40);
    const double start = now();
    if (!p.repaired || step == 0) read_table(&p, path, table, bytes);
    p.io_seconds += now() - start;
    const size_t at = step * 7919 % bytes;
    fill(&byte, 1, at);
    right = right && table[at] == byte;
  }
  return finish(&p, right);
}
