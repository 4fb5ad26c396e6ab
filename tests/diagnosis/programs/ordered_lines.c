/* Ranks write their lines of a report in rank order with MPI_File_write_ordered. */
#include <mpi.h>
#include <stdio.h>

#include "work.h"

enum { LINE = 40 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int lines = (int)read_size(argc, argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char* text = malloc((size_t)lines * LINE + 1);
  for (int i = 0; i < lines; i++) snprintf(text + i * LINE, LINE + 1, "rank %d%33d\n", rank, i);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "report.txt", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                &file);
  if (is_repaired(argc, argv)) {
    MPI_Datatype every;
    MPI_Type_vector(lines, LINE, LINE * ranks, MPI_BYTE, &every);
    MPI_Type_commit(&every);
    MPI_File_set_view(file, (MPI_Offset)rank * LINE, MPI_BYTE, every, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, text, lines * LINE, MPI_BYTE, MPI_STATUS_IGNORE);
  } else {
    for (int i = 0; i < lines; i++)
      MPI_File_write_ordered(file, text + i * LINE, LINE, MPI_BYTE, MPI_STATUS_IGNORE);
  }
  MPI_File_close(&file);
  compute(1500);
  if (rank == 0) printf("%d lines of each rank\n", lines);
  return MPI_Finalize();
}
