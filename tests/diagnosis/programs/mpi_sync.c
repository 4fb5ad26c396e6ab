/* Ranks call MPI_File_sync after each small record. */
#include <mpi.h>
#include <stdio.h>

#include "work.h"

enum { RECORD = 65536 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long records = read_size(argc, argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char* record = malloc(RECORD);
  memset(record, 'r', RECORD);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "records.bin", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                &file);
  for (long i = 0; i < records; i++) {
    MPI_File_write_at(file, ((MPI_Offset)i * ranks + rank) * RECORD, record, RECORD, MPI_BYTE,
                      MPI_STATUS_IGNORE);
    if (!is_repaired(argc, argv)) MPI_File_sync(file);
  }
  MPI_File_close(&file);
  compute(1500);
  if (rank == 0) printf("%ld records of each rank\n", records);
  return MPI_Finalize();
}
