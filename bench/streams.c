// Writes TOTAL bytes to FILE and prints the seconds: by write(2) of SIZE bytes, or by stdio with a
// flush per SIZE bytes. Usage: streams FILE write|stdio SIZE TOTAL
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int by_write(const char* name, const char* data, size_t size, size_t count) {
  const int file = open(name, O_WRONLY | O_CREAT, 0644);
  if (file < 0) return 1;
  for (size_t i = 0; i < count; ++i)
    if (write(file, data, size) != (ssize_t)size) return 1;
  return close(file);
}

static int by_stdio(const char* name, const char* data, size_t size, size_t count) {
  FILE* file = fopen(name, "r+");
  if (file == NULL) return 1;
  for (size_t i = 0; i < count; ++i)
    if (fwrite(data, 1, size, file) != size || fflush(file) != 0) return 1;
  return fclose(file);
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const size_t size = strtoull(argv[3], NULL, 10), count = strtoull(argv[4], NULL, 10) / size;
  char* data = malloc(size);
  memset(data, 'x', size);
  const double start = now();
  const int failed =
      (strcmp(argv[2], "stdio") == 0 ? by_stdio : by_write)(argv[1], data, size, count);
  printf("%.6f\n", now() - start);
  return failed;
}
