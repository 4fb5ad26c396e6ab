/* Sets collective buffers of 4 KiB, left over from a machine with little memory. */
#include <mpi.h>
#include <stdio.h>

#include "work.h"

enum { CELL = 4096 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int cells = (int)read_size(argc, argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* mine = malloc((size_t)cells * CELL);
  memset(mine, 'a' + rank, (size_t)cells * CELL);
  MPI_Info info;
  MPI_Info_create(&info);
  if (!is_repaired(argc, argv)) {
    MPI_Info_set(info, "romio_cb_write", "enable");
    MPI_Info_set(info, "cb_buffer_size", "4096");
  }
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "cells.out", MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file);
  MPI_File_write_at_all(file, (MPI_Offset)rank * cells * CELL, mine, cells * CELL, MPI_BYTE,
                        MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  compute(1500);
  if (rank == 0) printf("%d cells of each rank\n", cells);
  return MPI_Finalize();
}
