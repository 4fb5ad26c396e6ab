/* Ranks read interleaved cells of a shared file, each cell by an independent call. */
#include <mpi.h>
#include <stdio.h>

#include "work.h"

enum { CELL = 128 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int cells = (int)read_size(argc, argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  unsigned char *mine = malloc((size_t)cells * CELL), *part = malloc((size_t)cells * CELL);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "cells.bin", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  if (is_repaired(argc, argv)) {
    const int each = cells / ranks;
    MPI_Datatype every, of_rank;
    MPI_Type_vector(each, CELL, CELL * ranks, MPI_BYTE, &every);
    MPI_Type_create_resized(every, 0, CELL, &of_rank);
    MPI_Type_commit(&of_rank);
    MPI_File_read_at_all(file, (MPI_Offset)rank * cells * CELL, part, cells * CELL, MPI_BYTE,
                         MPI_STATUS_IGNORE);
    MPI_Alltoall(part, 1, of_rank, mine, each * CELL, MPI_BYTE, MPI_COMM_WORLD);
  } else {
    for (int i = 0; i < cells; i++)
      MPI_File_read_at(file, ((MPI_Offset)i * ranks + rank) * CELL, mine + (size_t)i * CELL, CELL,
                       MPI_BYTE, MPI_STATUS_IGNORE);
  }
  MPI_File_close(&file);
  compute(1500);
  unsigned long sum = 0, all;
  for (int i = 0; i < cells; i++) sum += mine[(size_t)i * CELL];
  MPI_Reduce(&sum, &all, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d cells of each rank, sum %lu\n", cells, all);
  return MPI_Finalize();
}
