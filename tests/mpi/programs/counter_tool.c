/* A typical profiling tool: counts barriers in MPI_ functions, calls the PMPI_ functions, and
 * prints the count at the end. */
#include <mpi.h>
#include <stdio.h>

static int barriers;

int MPI_Barrier(MPI_Comm comm) {
  ++barriers;
  return PMPI_Barrier(comm);
}

int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf("tool: rank %d made %d barriers\n", rank, barriers);
  fflush(stdout);
  return PMPI_Finalize();
}
