/* Common parts of the parallel steps. */
#include "../mpiio/check.h"
#include "science.h"

typedef struct {
  int rank, size;
} Team;

static inline Team team_of(MPI_Comm comm) {
  Team team;
  MPI_Comm_rank(comm, &team.rank);
  MPI_Comm_size(comm, &team.size);
  return team;
}
