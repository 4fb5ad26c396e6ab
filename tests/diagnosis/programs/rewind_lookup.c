/* Looks each station up by a search through the text file of stations from its beginning. */
#include <stdio.h>

#include "work.h"

enum { LINE = 128 };

static long find_in_file(FILE* stations, const char* wanted) {
  char line[LINE];
  rewind(stations);
  for (long n = 0; fgets(line, sizeof line, stations); n++)
    if (strncmp(line, wanted, 8) == 0) return n;
  return -1;
}

static char (*load(FILE* stations, long* count)) [LINE] {
  char (*lines)[LINE] = NULL, line[LINE];
  for (*count = 0; fgets(line, sizeof line, stations); ++*count) {
    if (*count % 1024 == 0) lines = realloc(lines, (size_t)(*count + 1024) * LINE);
    memcpy(lines[*count], line, LINE);
  }
  return lines;
}

int main(int argc, char** argv) {
  const long lookups = read_size(argc, argv);
  FILE* stations = fopen("stations.txt", "r");
  if (!stations) return perror("stations.txt"), 1;
  long count = 0, sum = 0;
  char (*lines)[LINE] = is_repaired(argc, argv) ? load(stations, &count) : NULL;
  for (long i = 0; i < lookups; i++) {
    char wanted[16];
    snprintf(wanted, sizeof wanted, "%08ld", 19000 + i % 1000);
    long at = 0;
    if (lines)
      while (at < count && strncmp(lines[at], wanted, 8) != 0) at++;
    else
      at = find_in_file(stations, wanted);
    sum += at;
  }
  fclose(stations);
  compute(1500);
  printf("%ld lookups, sum %ld\n", lookups, sum);
  return 0;
}
