/* Searches a path of ten directories for the same few modules again and again. */
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { DIRECTORIES = 10, MODULES = 20 };

static int find_module(long module) {
  for (int directory = 0; directory < DIRECTORIES; directory++) {
    char path[64];
    snprintf(path, sizeof path, "path%d/module%ld.so", directory, module);
    if (access(path, R_OK) == 0) return directory;
  }
  return -1;
}

int main(int argc, char** argv) {
  const long lookups = read_size(argc, argv);
  int known[MODULES];
  long missing = 0;
  for (int m = 0; m < MODULES; m++) known[m] = find_module(m);
  for (long i = 0; i < lookups; i++)
    missing += (is_repaired(argc, argv) ? known[i % MODULES] : find_module(i % MODULES)) < 0;
  compute(1500);
  printf("%ld lookups, %ld missing\n", lookups, missing);
  return 0;
}
