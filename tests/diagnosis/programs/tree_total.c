/* Adds up the sizes of a tree of files in each step, by a walk through it. */
#define _GNU_SOURCE
#include <ftw.h>
#include <stdio.h>

#include "work.h"

static long total;

static int add_size(const char* path, const struct stat* status, int type, struct FTW* place) {
  (void)path, (void)place;
  if (type == FTW_F) total += status->st_size;
  return 0;
}

int main(int argc, char** argv) {
  const long steps = read_size(argc, argv);
  long sum = 0;
  for (long step = 0; step < steps; step++) {
    if (!is_repaired(argc, argv) || step == 0) {
      total = 0;
      if (nftw("items", add_size, 16, FTW_PHYS)) perror("nftw");
    }
    sum += total;
  }
  compute(1500);
  printf("%ld steps, sum %ld\n", steps, sum);
  return 0;
}
