/* Failing calls in a program with MPI_ERRORS_RETURN: tracing must not make them fatal. Prints a 1
 * for each. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, value = 0;
  MPI_File file;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int barrier = MPI_Barrier(MPI_COMM_NULL) != MPI_SUCCESS;
  const int bcast = MPI_Bcast(&value, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
  const int send = MPI_Send(&value, 1, MPI_INT, 1000, 0, MPI_COMM_WORLD) != MPI_SUCCESS;
  const int open = MPI_File_open(MPI_COMM_SELF, "/nowhere/file", MPI_MODE_RDONLY, MPI_INFO_NULL,
                                 &file) != MPI_SUCCESS;
  printf("%d%d%d%d\n", barrier, bcast, send, open);
  MPI_Finalize();
  return 0;
}
