/* One of four ranks still writes with O_SYNC, left over from a search for an error. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { PART = 1 << 16, OUTPUT = 50 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long steps = read_size(argc, argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char path[32], *part = calloc(1, PART);
  snprintf(path, sizeof path, "part.%d", rank);
  const int slow = rank == 2 && !is_repaired(argc, argv);
  const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | (slow ? O_SYNC : 0), 0644);
  for (long step = 0; step < steps; step++) {
    compute(2);
    if (write(fd, part, PART) < 0) perror(path);
    if (step % OUTPUT == OUTPUT - 1) MPI_Barrier(MPI_COMM_WORLD);
  }
  close(fd);
  if (rank == 0) printf("%ld steps\n", steps);
  return MPI_Finalize();
}
