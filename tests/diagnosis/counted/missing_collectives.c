/* Ranks write interleaved blocks of a shared file, each block by an independent call.
 * Repaired: the ranks exchange blocks, and each writes one contiguous part per step. */
#include <string.h>

#include "counted_mpi.h"

enum { STEPS = 20, BLOCKS = 20000, BLOCK = 256 };

static void count(Program* p, long bytes) {
  p->counts.writes++;
  p->counts.bytes_written += bytes;
}

static void write_blocks(Program* p, MPI_File f, MPI_Offset at, int stride, const char* blocks,
                         long n) {
  for (long i = 0; i < n; i++, at += stride) {
    check(MPI_File_write_at(f, at, blocks + i * BLOCK, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE),
          "MPI_File_write_at", p->name);
    count(p, BLOCK);
  }
}

static void write_together(Program* p, MPI_File f, MPI_Offset at, int ranks, const char* blocks,
                           char* part, long n) {
  const int each = (int)n / ranks;
  MPI_Datatype every, of_rank;
  MPI_Type_vector(each, BLOCK, BLOCK * ranks, MPI_BYTE, &every);
  MPI_Type_create_resized(every, 0, BLOCK, &of_rank);
  MPI_Type_commit(&of_rank);
  MPI_Alltoall(blocks, each * BLOCK, MPI_BYTE, part, 1, of_rank, MPI_COMM_WORLD);
  check(MPI_File_write_at_all(f, at, part, (int)n * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE),
        "MPI_File_write_at_all", p->name);
  MPI_Type_free(&every);
  MPI_Type_free(&of_rank);
  count(p, n * BLOCK);
}

int main(int argc, char** argv) {
  Program p;
  int rank, ranks;
  begin_mpi(&p, "missing_collectives", "mpiio", &argc, &argv, &rank, &ranks);
  const char* path = in_directory(&p, "missing_collectives.dat");
  const long n = scale(&p, BLOCKS);
  if (rank == 0) make_file(&p, path, STEPS * (size_t)n * BLOCK * (size_t)ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  if (p.prepare) return MPI_Finalize();
  char *blocks = allocate((size_t)n * BLOCK), *part = allocate((size_t)n * BLOCK);
  MPI_File f;
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY, MPI_INFO_NULL, &f), "MPI_File_open",
        path);
  p.counts.opens++;
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 400);
    memset(blocks, 'a' + (step + rank) % 26, (size_t)n * BLOCK);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now();
    const MPI_Offset at = (MPI_Offset)step * n * ranks * BLOCK;
    if (p.repaired)
      write_together(&p, f, at + (MPI_Offset)rank * n * BLOCK, ranks, blocks, part, n);
    else
      write_blocks(&p, f, at + (MPI_Offset)rank * BLOCK, ranks * BLOCK, blocks, n);
    MPI_Barrier(MPI_COMM_WORLD);
    p.io_seconds += now() - start;
  }
  check(MPI_File_close(&f), "MPI_File_close", path);
  p.counts.closes++;
  return finish_mpi(&p, rank, true);
}
