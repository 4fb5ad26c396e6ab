/* Arguments and computation of the programs: PROGRAM SIZE [repaired]. Does no I/O. */
#ifndef WORK_H
#define WORK_H

#include <stdlib.h>
#include <string.h>

#define WORK_SIDE 512

static double work_planes[2][WORK_SIDE][WORK_SIDE];

static inline long read_size(int argc, char** argv) {
  const long size = argc > 1 ? atol(argv[1]) : 1000;
  return size > 0 ? size : 1;
}

static inline int is_repaired(int argc, char** argv) {
  return argc > 2 && strcmp(argv[2], "repaired") == 0;
}

/* Relaxes a plane of doubles; a sweep takes about 0.2 ms. */
static inline double compute(long sweeps) {
  work_planes[0][WORK_SIDE / 2][WORK_SIDE / 2] = 1;
  for (long s = 0; s < sweeps; s++) {
    double (*from)[WORK_SIDE] = work_planes[s % 2], (*to)[WORK_SIDE] = work_planes[1 - s % 2];
    for (int y = 1; y < WORK_SIDE - 1; y++)
      for (int x = 1; x < WORK_SIDE - 1; x++)
        to[y][x] = 0.25 * (from[y][x - 1] + from[y][x + 1] + from[y - 1][x] + from[y + 1][x]);
  }
  return work_planes[sweeps % 2][WORK_SIDE / 2][WORK_SIDE / 2 + 1];
}

/* A pseudo-random permutation of 0 .. n-1 for n a power of two, else a pseudo-random choice. */
static inline size_t pick(size_t i, size_t n) { return (i * 2654435761u + 12345) % n; }

#endif
