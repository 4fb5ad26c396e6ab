/* Step 3: a parallel program with serial I/O: all ranks send their data to rank 0, which writes.
 * Usage: 3_master FILE */
#include "parallel.h"

static int write_all(const char* path, const science* header, const int* values, size_t count) {
  FILE* file = fopen(path, "wb");
  if (file == NULL) return -1;
  const int wrong = fwrite(header, sizeof *header, 1, file) != 1 ||
                    fwrite(values, sizeof(int), count, file) != count;
  return fclose(file) != 0 || wrong ? -1 : 0;
}

static void write_data(MPI_Comm comm, const char* path) {
  const Team team = team_of(comm);
  int* array = make_array(team.rank);
  int* all = team.rank == 0 ? allocate(sizeof(int) * XDIM * YDIM * team.size)
                            : NULL; /* the data of all ranks must fit into one rank's memory */
  MPI_Gather(array, XDIM * YDIM, MPI_INT, all, XDIM * YDIM, MPI_INT, 0, comm);
  if (team.rank == 0) {
    const science header = {.row = YDIM * team.size, .col = XDIM, .iter = 1};
    if (write_all(path, &header, all, (size_t)XDIM * YDIM * team.size) != 0) {
      perror(path);
      MPI_Abort(comm, 1);
    }
  }
  free(all);
  free(array);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  write_data(MPI_COMM_WORLD, argc > 1 ? argv[1] : "ladder.dat");
  MPI_Finalize();
  return 0;
}
