// Creates a file, opens it again to read and to write, and writes and reads a number each time. All
// ranks together. The argument names the file.
#include <mpi.h>

static void check(int code) {
  if (code != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int modes[] = {MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_MODE_RDONLY,
                       MPI_MODE_CREATE | MPI_MODE_RDWR};
  int rank, number;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const MPI_Offset place = rank * (MPI_Offset)sizeof number;
  for (int i = 0; i < 3; i++) {
    MPI_File file;
    check(MPI_File_open(MPI_COMM_WORLD, argv[1], modes[i], MPI_INFO_NULL, &file));
    number = rank;
    if (i != 1) check(MPI_File_write_at(file, place, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    number = -1;
    check(MPI_File_read_at(file, place, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    if (number != rank) MPI_Abort(MPI_COMM_WORLD, 2);
    check(MPI_File_close(&file));
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
