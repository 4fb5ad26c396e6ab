/* Hands each intermediate result over in a temporary file. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { RESULT = 2000 };

static void pass_in_file(const char* from, char* to) {
  char path[] = "scratch-XXXXXX";
  const int fd = mkstemp(path);
  if (fd < 0 || write(fd, from, RESULT) < 0) perror(path);
  close(fd);
  const int again = open(path, O_RDONLY);
  if (again < 0 || read(again, to, RESULT) < 0) perror(path);
  close(again);
  unlink(path);
}

int main(int argc, char** argv) {
  const long results = read_size(argc, argv);
  char from[RESULT], to[RESULT];
  unsigned long sum = 0;
  for (long i = 0; i < results; i++) {
    memset(from, (int)(i % 100), sizeof from);
    if (is_repaired(argc, argv))
      memcpy(to, from, sizeof to);
    else
      pass_in_file(from, to);
    sum += (unsigned char)to[RESULT - 1];
  }
  compute(1500);
  printf("%ld results, sum %lu\n", results, sum);
  return 0;
}
