/* Small records read in random order, with three seeks before each (current offset, size of the
 * file, offset of the record). Repaired: the file is read once, in large blocks, and the records
 * come from memory. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "counted.h"

enum { STEPS = 16, RECORDS = 1 << 18, RECORD = 64, BLOCK = 4 << 20 };

static void read_record(Program* p, int fd, size_t number, char* record) {
  const off_t here = seek(p, fd, 0, SEEK_CUR), end = seek(p, fd, 0, SEEK_END),
              there = (off_t)(number * RECORD);
  if (there + RECORD > end) fail("seek past the end, from", here ? "a record" : "the start");
  seek(p, fd, there, SEEK_SET);
  read_next(p, fd, record, RECORD);
}

static char* read_all(Program* p, int fd) {
  char* all = allocate((size_t)RECORDS * RECORD);
  for (size_t at = 0; at < (size_t)RECORDS * RECORD; at += BLOCK) read_next(p, fd, all + at, BLOCK);
  return all;
}

int main(int argc, char** argv) {
  Program p;
  begin(&p, "seek_storm", "posix", argc, argv);
  const char* path = in_directory(&p, "seek_storm.records");
  make_file(&p, path, (size_t)RECORDS * RECORD);
  if (p.prepare) return 0;
  const size_t per_step = (size_t)scale(&p, RECORDS / STEPS * 4);
  char record[RECORD], wanted[RECORD];
  bool right = true;
  const int fd = open_file(&p, path, O_RDONLY);
  double start = now();
  char* all = p.repaired ? read_all(&p, fd) : NULL;
  p.io_seconds += now() - start;
  for (size_t step = 0; step < STEPS; step++) {
    compute(&p, 500);
    start = now();
    for (size_t i = 0; i < per_step; i++) {
      const size_t number = scatter(step * per_step + i, RECORDS);
      if (p.repaired)
        memcpy(record, all + number * RECORD, RECORD);
      else
        read_record(&p, fd, number, record);
      if (i % 1024 == 0)
        fill(wanted, RECORD, number * RECORD), right = right && memcmp(record, wanted, RECORD) == 0;
    }
    p.io_seconds += now() - start;
  }
  close_file(&p, fd);
  return finish(&p, right);
}
