/* Reads a field with one fread per value. */
#include <stdio.h>

#include "work.h"

int main(int argc, char** argv) {
  const size_t values = (size_t)read_size(argc, argv);
  float* field = malloc(values * sizeof *field);
  FILE* in = fopen("field.bin", "rb");
  if (!in) return perror("field.bin"), 1;
  if (is_repaired(argc, argv)) {
    if (fread(field, sizeof *field, values, in) != values) return 1;
  } else {
    for (size_t i = 0; i < values; i++)
      if (fread(field + i, sizeof *field, 1, in) != 1) return 1;
  }
  fclose(in);
  compute(1500);
  unsigned long sum = 0;
  for (size_t i = 0; i < values; i++) sum += ((unsigned char*)(field + i))[0];
  printf("%zu values, sum %lu\n", values, sum);
  return 0;
}
