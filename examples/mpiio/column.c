/* Each rank owns columns of a row-major array: thousands of small pieces in the file, one
 * collective call. Usage: column [FILE] */
#include <stdlib.h>

#include "check.h"

enum { ROWS = 4096, WIDTH = 16 }; /* each rank owns WIDTH columns */

static double element(int row, int column) { return row * 1e4 + column; }

/* Writes or reads the rank's columns, with an array view of the file. */
static void transfer(MPI_File file, int rank, int size, double* part, int writes) {
  const int sizes[] = {ROWS, WIDTH * size}, subsizes[] = {ROWS, WIDTH},
            starts[] = {0, WIDTH * rank};
  MPI_Datatype columns;
  MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &columns);
  MPI_Type_commit(&columns);
  CHECK(MPI_File_set_view(file, 0, MPI_DOUBLE, columns, "native", MPI_INFO_NULL));
  MPI_Type_free(&columns);
  if (writes)
    CHECK(MPI_File_write_all(file, part, ROWS * WIDTH, MPI_DOUBLE, MPI_STATUS_IGNORE));
  else
    CHECK(MPI_File_read_all(file, part, ROWS * WIDTH, MPI_DOUBLE, MPI_STATUS_IGNORE));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* path = argc > 1 ? argv[1] : "column.dat";
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double* part = malloc(sizeof(double) * ROWS * WIDTH);
  for (int i = 0; i < ROWS * WIDTH; i++) part[i] = element(i / WIDTH, rank * WIDTH + i % WIDTH);

  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
  transfer(file, rank, size, part, 1);
  for (int i = 0; i < ROWS * WIDTH; i++) part[i] = -1;
  transfer(file, rank, size, part, 0);
  CHECK(MPI_File_close(&file));

  int wrong = 0, wrong_in_all = 0;
  for (int i = 0; i < ROWS * WIDTH; i++)
    wrong += part[i] != element(i / WIDTH, rank * WIDTH + i % WIDTH);
  MPI_Reduce(&wrong, &wrong_in_all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("%d x %d array by columns, %d ranks, %d wrong\n", ROWS, WIDTH * size, size,
           wrong_in_all);
  free(part);
  MPI_Finalize();
  return wrong != 0;
}
