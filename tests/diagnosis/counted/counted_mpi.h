/* MPI functions of the bad programs: errors, and sums of the counts of all ranks. */
#ifndef COUNTED_MPI_H
#define COUNTED_MPI_H

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>

#include "counted.h"

static inline void check(int code, const char* operation, const char* path) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "counted: %s %s: %s\n", operation, path, text);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static inline void begin_mpi(Program* p, const char* name, const char* layer, int* argc,
                             char*** argv, int* rank, int* ranks) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, ranks);
  begin(p, name, layer, *argc, *argv);
}

/* Prints on rank 0 the sums of all ranks, and the longest time. */
static inline int finish_mpi(Program* p, int rank, bool verified) {
  enum { FIELDS = sizeof(Counts) / sizeof(long) };
  Counts sums;
  double longest;
  int mine = verified, all;
  MPI_Reduce(&p->counts, &sums, FIELDS, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&p->io_seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  if (rank == 0) {
    p->counts = sums;
    p->io_seconds = longest;
    finish(p, all);
  }
  MPI_Finalize();
  return all ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
