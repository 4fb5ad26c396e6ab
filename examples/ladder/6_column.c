/* Step 6: every rank reads a column of the array: many small pieces, one collective call. Usage:
 * 6_column FILE */
#include "parallel.h"

static science read_header(MPI_Comm comm, MPI_File file, int rank) {
  science header;
  if (rank == 0)
    CHECK(MPI_File_read_at(file, 0, &header, sizeof header, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_Bcast(&header, sizeof header, MPI_BYTE, 0, comm);
  return header;
}

static int* read_column(MPI_File file, science header, int column) {
  const int sizes[] = {header.row, header.col}, subsizes[] = {header.row, 1},
            starts[] = {0, column};
  MPI_Datatype one_column;
  MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &one_column);
  MPI_Type_commit(&one_column);
  CHECK(MPI_File_set_view(file, sizeof header, MPI_INT, one_column, "native", MPI_INFO_NULL));
  MPI_Type_free(&one_column);
  int* values = allocate(sizeof(int) * header.row);
  CHECK(MPI_File_read_all(file, values, header.row, MPI_INT, MPI_STATUS_IGNORE));
  return values;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* path = argc > 1 ? argv[1] : "ladder.dat";
  const Team team = team_of(MPI_COMM_WORLD);
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  const science header = read_header(MPI_COMM_WORLD, file, team.rank);
  const int column = header.col / 2 + team.rank;
  int* values = read_column(file, header, column);
  CHECK(MPI_File_close(&file));

  int wrong = 0, wrong_in_all = 0;
  for (int row = 0; row < header.row; row++) wrong += values[row] != value_at(0, row, column);
  MPI_Reduce(&wrong, &wrong_in_all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (team.rank == 0)
    printf("columns %d to %d of %d rows, %d wrong\n", column, column + team.size - 1, header.row,
           wrong_in_all);
  free(values);
  MPI_Finalize();
  return wrong != 0;
}
