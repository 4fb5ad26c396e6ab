/* Calls MPI_Abort on rank 1 while the other ranks wait for it. Usage: aborts PLACE [CODE]. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Abort(MPI_COMM_WORLD, argc > 2 ? atoi(argv[2]) : 3);
    for (;;) pause(); /* MPICH may return before the launcher has killed the rank. */
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
