/* A single process that reads a file byte by byte through MPI-IO. */
#include <mpi.h>
#include <stdio.h>

#include "work.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int bytes = (int)read_size(argc, argv);
  unsigned char* text = malloc((size_t)bytes);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "text.bin", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  if (is_repaired(argc, argv)) {
    MPI_File_read(file, text, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
  } else {
    for (int i = 0; i < bytes; i++) MPI_File_read(file, text + i, 1, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  MPI_File_close(&file);
  compute(1500);
  unsigned long sum = 0;
  for (int i = 0; i < bytes; i++) sum += text[i];
  printf("%d bytes, sum %lu\n", bytes, sum);
  return MPI_Finalize();
}
