/* A database that opens its journal with O_DSYNC and appends each row on its own. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { ROW = 200, GROUP = 5000 };

int main(int argc, char** argv) {
  const long rows = read_size(argc, argv);
  const long group = is_repaired(argc, argv) ? GROUP : 1;
  char* lines = malloc((size_t)group * ROW);
  memset(lines, 'r', (size_t)group * ROW);
  const int fd = open("journal.db", O_CREAT | O_TRUNC | O_WRONLY | O_DSYNC, 0644);
  if (fd < 0) return perror("journal.db"), 1;
  for (long done = 0; done < rows; done += group) {
    const long n = rows - done < group ? rows - done : group;
    if (write(fd, lines, (size_t)n * ROW) < 0) return perror("write"), 1;
  }
  close(fd);
  compute(1500);
  printf("%ld rows\n", rows);
  return 0;
}
