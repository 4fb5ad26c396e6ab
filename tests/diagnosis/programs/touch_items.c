/* Marks an item as done in each step, by its permissions and time. */
#include <stdio.h>
#include <sys/stat.h>
#include <utime.h>

#include "work.h"

enum { ITEMS = 200 };

static void mark(long item) {
  char name[32];
  snprintf(name, sizeof name, "items/%06ld", item);
  if (chmod(name, 0640) || utime(name, NULL)) perror(name);
}

int main(int argc, char** argv) {
  const long steps = read_size(argc, argv);
  for (long step = 0; step < steps; step++)
    if (!is_repaired(argc, argv) || step < ITEMS) mark(step % ITEMS);
  compute(1500);
  printf("%ld steps of %d items\n", steps, ITEMS);
  return 0;
}
