/* Ranks open and close the shared file for each step. */
#include <mpi.h>
#include <stdio.h>

#include "work.h"

enum { PART = 32768 };

static MPI_File open_output(void) {
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "steps.bin", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                &file);
  return file;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long steps = read_size(argc, argv);
  const int repaired = is_repaired(argc, argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char* part = malloc(PART);
  memset(part, 'p', PART);
  MPI_File file = repaired ? open_output() : MPI_FILE_NULL;
  for (long step = 0; step < steps; step++) {
    if (!repaired) file = open_output();
    MPI_File_write_at(file, ((MPI_Offset)step * ranks + rank) * PART, part, PART, MPI_BYTE,
                      MPI_STATUS_IGNORE);
    if (!repaired) MPI_File_close(&file);
  }
  if (repaired) MPI_File_close(&file);
  compute(1500);
  if (rank == 0) printf("%ld steps\n", steps);
  return MPI_Finalize();
}
