/* Ranks write each row of 64 bytes together, instead of all rows of a step. */
#include <mpi.h>
#include <stdio.h>

#include "work.h"

enum { ROW = 64 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long rows = read_size(argc, argv);
  const long each = is_repaired(argc, argv) ? rows : 1;
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char* mine = malloc((size_t)rows * ROW);
  memset(mine, 'a' + rank, (size_t)rows * ROW);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "rows.bin", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                &file);
  for (long done = 0; done < rows; done += each)
    MPI_File_write_at_all(file, (rank * rows + done) * ROW, mine + done * ROW, (int)each * ROW,
                          MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  compute(1500);
  if (rank == 0) printf("%ld rows of each rank\n", rows);
  return MPI_Finalize();
}
