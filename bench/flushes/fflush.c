// fflush FILE LINES: a line at a time, each flushed by fflush.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  FILE* out = argc == 3 ? fopen(argv[1], "w") : NULL;
  if (out == NULL) return 2;
  for (int i = 0, lines = atoi(argv[2]); i < lines; ++i)
    if (fprintf(out, "line %d %g\n", i, 0.5 * i) < 0 || fflush(out) != 0) return 1;
  return fclose(out);
}
