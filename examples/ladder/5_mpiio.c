/* Step 5: all ranks write one file together. Usage: 5_mpiio FILE */
#include "parallel.h"

static void write_data(MPI_Comm comm, const char* path) {
  const Team team = team_of(comm);
  const science header = {.row = YDIM * team.size, .col = XDIM, .iter = 1};
  int* array = make_array(team.rank);
  MPI_File file;
  CHECK(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
  CHECK(MPI_File_set_size(file, 0));
  if (team.rank == 0)
    CHECK(MPI_File_write(file, &header, sizeof header, MPI_BYTE, MPI_STATUS_IGNORE));
  /* From here on offsets count integers after the header. */
  CHECK(MPI_File_set_view(file, sizeof header, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
  const MPI_Offset begin = (MPI_Offset)team.rank * XDIM * YDIM;
  CHECK(MPI_File_write_at_all(file, begin, array, XDIM * YDIM, MPI_INT, MPI_STATUS_IGNORE));
  CHECK(MPI_File_close(&file));
  free(array);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  write_data(MPI_COMM_WORLD, argc > 1 ? argv[1] : "ladder.dat");
  MPI_Finalize();
  return 0;
}
