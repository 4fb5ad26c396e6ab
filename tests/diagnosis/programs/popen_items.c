/* Asks a program of its own for the basename of each path. */
#include <stdio.h>

#include "work.h"

static void ask_program(const char* path, char* name, int bytes) {
  char command[128];
  snprintf(command, sizeof command, "basename %s", path);
  FILE* answer = popen(command, "r");
  if (!answer || !fgets(name, bytes, answer)) perror("popen");
  if (answer) pclose(answer);
  name[strcspn(name, "\n")] = 0;
}

int main(int argc, char** argv) {
  const long items = read_size(argc, argv);
  unsigned long length = 0;
  for (long i = 0; i < items; i++) {
    char path[64], name[64];
    snprintf(path, sizeof path, "/data/run/item%ld", i);
    if (is_repaired(argc, argv))
      snprintf(name, sizeof name, "%.63s", strrchr(path, '/') + 1);
    else
      ask_program(path, name, sizeof name);
    length += strlen(name);
  }
  compute(1500);
  printf("%ld items, %lu characters\n", items, length);
  return 0;
}
