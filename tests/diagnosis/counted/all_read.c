/* Every step, every rank reads the whole of that step's table and uses its own part. Repaired:
 * every rank reads its part. O_DIRECT simulates ranks on several nodes: without it the page cache
 * of one machine would serve the repeated reads. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>

#include "counted_mpi.h"

enum { STEPS = 10, TABLE = 64 << 20, BLOCK = 1 << 20 };

static void read_table(Program* p, const char* path, char* table, size_t start, size_t begin,
                       size_t end) {
  const int fd = open_file(p, path, O_RDONLY | O_DIRECT);
  if (start + begin > 0) seek(p, fd, (off_t)(start + begin), SEEK_SET);
  for (size_t at = begin; at < end; at += BLOCK) read_next(p, fd, table + at, BLOCK);
  close_file(p, fd);
}

int main(int argc, char** argv) {
  Program p;
  int rank, ranks;
  begin_mpi(&p, "all_read", "posix", &argc, &argv, &rank, &ranks);
  const char* path = in_directory(&p, "all_read.table");
  const long steps = scale(&p, STEPS);
  if (rank == 0) make_file(&p, path, (size_t)steps * TABLE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (p.prepare) return MPI_Finalize();
  char *table = allocate(TABLE), wanted[4096];
  const size_t part = (size_t)TABLE / BLOCK / (size_t)ranks * BLOCK, mine = part * (size_t)rank;
  bool right = true;
  for (long step = 0; step < steps; step++) {
    compute(&p, 500);
    const double start = now();
    if (p.repaired)
      read_table(&p, path, table, (size_t)step * TABLE, mine, mine + part);
    else
      read_table(&p, path, table, (size_t)step * TABLE, 0, TABLE);
    p.io_seconds += now() - start;
    const size_t at = mine + (size_t)step * sizeof wanted;
    fill(wanted, sizeof wanted, (size_t)step * TABLE + at);
    right = right && memcmp(table + at, wanted, sizeof wanted) == 0;
  }
  return finish_mpi(&p, rank, right);
}
