/* A few bytes of every 64 KiB written through a view: data sieving reads whole windows, changes the
 * few bytes and writes the windows back. Repaired: data sieving off for this file, so that only the
 * few bytes are written. */
#include <string.h>

#include "counted_mpi.h"

enum { STEPS = 40, PIECES = 1024, PIECE = 64, PITCH = 65536 };

static MPI_File open_with_hints(Program* p, const char* path) {
  MPI_File f;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "romio_ds_write", p->repaired ? "disable" : "enable");
  check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, info, &f), "MPI_File_open", path);
  MPI_Info_free(&info);
  p->counts.opens++;
  return f;
}

int main(int argc, char** argv) {
  Program p;
  int rank, ranks;
  begin_mpi(&p, "hole_rmw", "mpiio", &argc, &argv, &rank, &ranks);
  const char* path = in_directory(&p, "hole_rmw.dat");
  const long n = scale(&p, PIECES);
  if (rank == 0) make_file(&p, path, (size_t)n * PITCH * (size_t)ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  if (p.prepare) return MPI_Finalize();
  char* pieces = allocate((size_t)n * PIECE);
  MPI_File f = open_with_hints(&p, path);
  MPI_Datatype sparse;
  MPI_Type_vector((int)n, PIECE, PITCH, MPI_BYTE, &sparse);
  MPI_Type_commit(&sparse);
  check(
      MPI_File_set_view(f, (MPI_Offset)rank * n * PITCH, MPI_BYTE, sparse, "native", MPI_INFO_NULL),
      "MPI_File_set_view", path);
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 200);
    memset(pieces, 'a' + step % 26, (size_t)n * PIECE);
    const double start = now();
    check(MPI_File_write_at(f, 0, pieces, (int)n * PIECE, MPI_BYTE, MPI_STATUS_IGNORE),
          "MPI_File_write_at", path);
    p.io_seconds += now() - start;
    p.counts.writes++;
    p.counts.bytes_written += n * PIECE;
  }
  check(MPI_File_close(&f), "MPI_File_close", path);
  p.counts.closes++;
  return finish_mpi(&p, rank, true);
}
