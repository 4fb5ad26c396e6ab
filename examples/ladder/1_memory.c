/* Step 1: self-describing data in memory, without I/O. */
#include "science.h"

int main(void) {
  const science header = {.row = YDIM, .col = XDIM, .iter = 1};
  int* array = make_array(0);
  printf("%d x %d integers of iteration %d, %zu bytes behind a header of %zu\n", header.row,
         header.col, header.iter, sizeof(int) * XDIM * YDIM, sizeof header);
  free(array);
  return 0;
}
