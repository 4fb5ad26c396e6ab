/* Rank 0 receives the results of all ranks and writes a file for each. Repaired: every rank writes
 * its own. */
#include <fcntl.h>
#include <string.h>

#include "counted_mpi.h"

enum { STEPS = 40, RESULT = 48 << 20, BLOCK = 4 << 20 };

static void write_result(Program* p, int owner, const char* result, size_t bytes) {
  char name[64];
  snprintf(name, sizeof name, "one_rank.%d.dat", owner);
  const int fd = open_file(p, in_directory(p, name), O_WRONLY);
  for (size_t at = 0; at < bytes; at += BLOCK)
    write_next(p, fd, result + at, bytes - at < BLOCK ? bytes - at : BLOCK);
  close_file(p, fd);
}

static void write_for_all(Program* p, int rank, int ranks, const char* result, char* received,
                          size_t bytes) {
  if (rank != 0) MPI_Send(result, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  if (rank == 0) write_result(p, 0, result, bytes);
  for (int other = 1; rank == 0 && other < ranks; other++) {
    MPI_Recv(received, (int)bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    write_result(p, other, received, bytes);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  Program p;
  int rank, ranks;
  begin_mpi(&p, "one_rank", "posix", &argc, &argv, &rank, &ranks);
  const size_t bytes = (size_t)scale(&p, RESULT);
  char name[64];
  snprintf(name, sizeof name, "one_rank.%d.dat", rank);
  make_file(&p, in_directory(&p, name), bytes);
  if (p.prepare) return MPI_Finalize();
  char *result = allocate(bytes), *received = allocate(bytes);
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 200);
    memset(result, step + rank, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now();
    if (p.repaired)
      write_result(&p, rank, result, bytes);
    else
      write_for_all(&p, rank, ranks, result, received, bytes);
    p.io_seconds += now() - start;
  }
  return finish_mpi(&p, rank, true);
}
