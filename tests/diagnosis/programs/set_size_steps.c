/* Ranks agree on a new size of the shared file before each of their writes. */
#include <mpi.h>
#include <stdio.h>

#include "work.h"

enum { PART = 1 << 16 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long steps = read_size(argc, argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char* part = malloc(PART);
  memset(part, 'a' + rank, PART);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "steps.out", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                &file);
  for (long step = 0; step < steps; step++) {
    if (!is_repaired(argc, argv))
      for (int record = 1; record <= 64; record++)
        MPI_File_set_size(file, (MPI_Offset)step * ranks * PART + record * (ranks * PART / 64));
    MPI_File_write_at(file, ((MPI_Offset)step * ranks + rank) * PART, part, PART, MPI_BYTE,
                      MPI_STATUS_IGNORE);
  }
  MPI_File_close(&file);
  compute(1500);
  if (rank == 0) printf("%ld steps\n", steps);
  return MPI_Finalize();
}
