/* A journal that is forced to the disk after every record. Repaired: once, at the end. */
#include <fcntl.h>

#include "counted.h"

enum { STEPS = 20, RECORDS = 100, RECORD = 16384 };

static void write_records(Program* p, int fd, const char* records, long n) {
  for (long i = 0; i < n; i++) {
    write_next(p, fd, records + i * RECORD, RECORD);
    if (!p->repaired) sync_file(p, fd);
  }
}

int main(int argc, char** argv) {
  Program p;
  begin(&p, "fsync_per_write", "posix", argc, argv);
  const char* path = in_directory(&p, "fsync_per_write.dat");
  const long n = scale(&p, RECORDS);
  if (p.prepare) return 0;
  char* records = allocate((size_t)n * RECORD);
  const int fd = open_file(&p, path, O_CREAT | O_TRUNC | O_WRONLY);
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 500);
    fill(records, (size_t)n * RECORD, (size_t)(step * n) * RECORD);
    const double start = now();
    write_records(&p, fd, records, n);
    p.io_seconds += now() - start;
  }
  if (p.repaired) sync_file(&p, fd);
  close_file(&p, fd);
  return finish(&p, p.counts.bytes_written == STEPS * n * RECORD);
}
