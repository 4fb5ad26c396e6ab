/* Records samples of a sensor in a stream whose buffer was switched off "to lose nothing". */
#include <stdio.h>

#include "work.h"

typedef struct {
  double time, value[4];
} Sample;

int main(int argc, char** argv) {
  const long samples = read_size(argc, argv);
  FILE* out = fopen("samples.bin", "wb");
  if (!out) return perror("samples.bin"), 1;
  setvbuf(out, NULL, is_repaired(argc, argv) ? _IOFBF : _IONBF, 1 << 20);
  for (long i = 0; i < samples; i++) {
    const Sample sample = {(double)i * 0.01, {1, 2, 3, (double)(i % 100)}};
    fwrite(&sample, sizeof sample, 1, out);
    if (i % (samples / 10 + 1) == 0) compute(150);
  }
  fclose(out);
  printf("%ld samples\n", samples);
  return 0;
}
