/* Common part of the examples: a failed MPI-IO call ends the program with the MPI's message. */
#include <mpi.h>
#include <stdio.h>

static inline void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "%s: %s\n", call, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check(call, #call)
