/* Healthy: all ranks write large contiguous parts of one shared file together, once per step. */
#include <string.h>

#include "counted_mpi.h"

enum { STEPS = 10, PART = 8 << 20 };

int main(int argc, char** argv) {
  Program p;
  int rank, ranks;
  begin_mpi(&p, "healthy_collective", "mpiio", &argc, &argv, &rank, &ranks);
  const char* path = in_directory(&p, "healthy_collective.dat");
  if (rank == 0) make_file(&p, path, (size_t)STEPS * PART * (size_t)ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  if (p.prepare) return MPI_Finalize();
  char* part = allocate(PART);
  MPI_File f;
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY, MPI_INFO_NULL, &f), "MPI_File_open",
        path);
  p.counts.opens++;
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 800);
    memset(part, step + rank, PART);
    const double start = now();
    const MPI_Offset at = ((MPI_Offset)step * ranks + rank) * PART;
    check(MPI_File_write_at_all(f, at, part, PART, MPI_BYTE, MPI_STATUS_IGNORE),
          "MPI_File_write_at_all", path);
    p.io_seconds += now() - start;
    p.counts.writes++;
    p.counts.bytes_written += PART;
  }
  check(MPI_File_close(&f), "MPI_File_close", path);
  p.counts.closes++;
  return finish_mpi(&p, rank, true);
}
