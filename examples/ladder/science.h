/* Common parts of all steps: a header that describes the experiment, and a 2-D array of
 * integers per rank in one allocation. */
#include <stdio.h>
#include <stdlib.h>

enum { XDIM = 1000, YDIM = 500 }; /* each rank has YDIM rows of XDIM integers */

typedef struct {
  int row;
  int col;
  int iter;
} science;

static inline int value_at(int rank, int row, int column) {
  return (rank * YDIM + row) * 10 + column % 10;
}

static inline void* allocate(size_t bytes) {
  void* memory = malloc(bytes);
  if (memory == NULL) {
    perror("malloc");
    exit(1);
  }
  return memory;
}

/* One allocation with contiguous bytes can be written, sent and described as a whole. An array of
 * pointers to rows would need as many allocations and calls as there are rows. */
static inline int* make_array(int rank) {
  int* array = allocate(sizeof(int) * XDIM * YDIM);
  for (int row = 0; row < YDIM; row++)
    for (int column = 0; column < XDIM; column++)
      array[row * XDIM + column] = value_at(rank, row, column);
  return array;
}
