// A library that uses files before libpario's own constructors have run.
#include <stdio.h>

__attribute__((constructor)) static void begin(void) {
  FILE* file = fopen("early", "w");
  if (file != NULL) fclose(file);
}
