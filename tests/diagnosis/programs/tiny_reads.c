/* Sums the energies of particles that are read one record of 24 bytes at a time. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

typedef struct {
  uint64_t id, energy, weight;
} Particle;

enum { BLOCK = 1 << 16 };

int main(int argc, char** argv) {
  const long wanted = read_size(argc, argv);
  const size_t each = is_repaired(argc, argv) ? BLOCK : 1;
  Particle* particles = malloc(each * sizeof *particles);
  uint64_t energy = 0;
  long got = 0;
  const int fd = open("particles.bin", O_RDONLY);
  if (fd < 0) return perror("particles.bin"), 1;
  while (got < wanted) {
    const ssize_t n = read(fd, particles, each * sizeof *particles);
    if (n <= 0) break;
    for (size_t i = 0; i < (size_t)n / sizeof *particles; i++, got++)
      energy += particles[i].energy % 1000;
  }
  close(fd);
  compute(1500);
  printf("%ld particles, energy %lu\n", got, (unsigned long)energy);
  return 0;
}
