/* A stream of random numbers that all ranks draw alike, so that each knows the steps of all others.
 */
#ifndef DIFFERENTIAL_RANDOM_H
#define DIFFERENTIAL_RANDOM_H

#include <stdint.h>

typedef struct {
  uint64_t state;
} Random;

static inline uint64_t mix_bits(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static inline uint64_t draw(Random* random) {
  return mix_bits(random->state++ * 0x2545f4914f6cdd1du);
}

/* low <= result <= high */
static inline long between(Random* random, long low, long high) {
  return low + (long)(draw(random) % (uint64_t)(high - low + 1));
}

static inline int chance(Random* random, int percent) { return between(random, 0, 99) < percent; }

#endif
