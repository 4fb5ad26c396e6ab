/* Healthy: every rank writes a file of its own in blocks of 4 MiB, and computes. */
#include <fcntl.h>

#include "counted_mpi.h"

enum { STEPS = 20, BLOCKS = 4, BLOCK = 4 << 20 };

int main(int argc, char** argv) {
  Program p;
  int rank, ranks;
  begin_mpi(&p, "healthy_files", "posix", &argc, &argv, &rank, &ranks);
  char name[64];
  snprintf(name, sizeof name, "healthy_files.%d.dat", rank);
  make_file(&p, in_directory(&p, name), (size_t)STEPS * BLOCKS * BLOCK);
  if (p.prepare) return MPI_Finalize();
  char* block = allocate(BLOCK);
  const int fd = open_file(&p, in_directory(&p, name), O_WRONLY);
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 400);
    const double start = now();
    for (int i = 0; i < BLOCKS; i++) write_next(&p, fd, block, BLOCK);
    p.io_seconds += now() - start;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  close_file(&p, fd);
  return finish_mpi(&p, rank, p.counts.bytes_written == (long)STEPS * BLOCKS * BLOCK);
}
