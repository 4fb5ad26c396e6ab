/* Asks for the free space of the file system before each record that it appends. */
#include <stdio.h>
#include <sys/statvfs.h>

#include "work.h"

static int is_full(void) {
  struct statvfs space;
  return statvfs("out.dat", &space) == 0 && space.f_bavail < 1000;
}

int main(int argc, char** argv) {
  const long records = read_size(argc, argv);
  FILE* out = fopen("out.dat", "w");
  if (out == NULL) return 1;
  int full = is_full();
  for (long i = 0; i < records && !full; i++) {
    if (!is_repaired(argc, argv)) full = is_full();
    fprintf(out, "record %ld\n", i);
  }
  if (fclose(out) != 0) return 1;
  compute(1500);
  printf("%ld records\n", records);
  return 0;
}
