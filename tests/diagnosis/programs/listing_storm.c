/* Finds the input of each task by a search through the listing of a large directory. */
#include <dirent.h>
#include <stdio.h>

#include "work.h"

enum { NAMES = 20000 };

static char names[NAMES][32];

static long list_items(void) {
  long n = 0;
  DIR* folder = opendir("items");
  if (!folder) return 0;
  for (struct dirent* entry; n < NAMES && (entry = readdir(folder));)
    snprintf(names[n++], sizeof names[0], "%.31s", entry->d_name);
  closedir(folder);
  return n;
}

int main(int argc, char** argv) {
  const long tasks = read_size(argc, argv);
  long known = is_repaired(argc, argv) ? list_items() : 0, found = 0;
  for (long task = 0; task < tasks; task++) {
    char wanted[32];
    snprintf(wanted, sizeof wanted, "%06ld", task % 1000);
    if (!is_repaired(argc, argv)) known = list_items();
    for (long i = 0; i < known; i++) found += strncmp(names[i], wanted, 6) == 0;
  }
  compute(1500);
  printf("%ld tasks, %ld inputs\n", tasks, found);
  return 0;
}
