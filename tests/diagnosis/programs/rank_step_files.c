/* Each rank creates a small file for each step. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { OUTPUT = 3000 };

static void write_file(const char* path, int flags, const char* output) {
  const int fd = open(path, O_CREAT | O_WRONLY | flags, 0644);
  if (fd < 0 || write(fd, output, OUTPUT) < 0) perror(path);
  close(fd);
}

static void write_all(const char* path, const char* output, long steps) {
  FILE* out = fopen(path, "wb");
  for (long step = 0; step < steps; step++) fwrite(output, OUTPUT, 1, out);
  fclose(out);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long steps = read_size(argc, argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char path[64], output[OUTPUT];
  memset(output, 'o', sizeof output);
  snprintf(path, sizeof path, "output.%d", rank);
  if (is_repaired(argc, argv)) write_all(path, output, steps);
  for (long step = 0; step < steps && !is_repaired(argc, argv); step++) {
    snprintf(path, sizeof path, "output.%d.%ld", rank, step);
    write_file(path, O_TRUNC, output);
  }
  compute(1500);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%ld steps\n", steps);
  return MPI_Finalize();
}
