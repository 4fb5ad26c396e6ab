/* Bytes that no rank writes. Three collective writes of blocks of 100 bytes, each followed by a
 * hole of 100 bytes; counts the bytes of holes that are not zero in the file.
 * Usage: holes [FILE [BLOCKS]], BLOCKS per rank and call */
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { BLOCK = 100, STEPS = 3 };

/* Writes the blocks of this rank in one step. */
static void write_step(MPI_File file, int step, int blocks, int rank, int size) {
  const MPI_Offset stride = 2 * (MPI_Offset)BLOCK;
  MPI_Datatype part;
  MPI_Type_vector(blocks, BLOCK, 2 * BLOCK * size, MPI_BYTE, &part);
  MPI_Type_commit(&part);
  CHECK(MPI_File_set_view(file, (step * (MPI_Offset)blocks * size + rank) * stride, MPI_BYTE, part,
                          "native", MPI_INFO_NULL));
  char* data = malloc((size_t)blocks * BLOCK);
  memset(data, 'a' + rank % 26, (size_t)blocks * BLOCK);
  CHECK(MPI_File_write_all(file, data, blocks * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
  free(data);
  MPI_Type_free(&part);
}

/* Counts the bytes of holes that are not zero. */
static long count_wrong(const char* path) {
  static char block[BLOCK];
  long wrong = 0;
  FILE* file = fopen(path, "rb");
  for (int part = 0; file != NULL && fread(block, 1, BLOCK, file) == BLOCK; part++)
    for (int i = 0; part % 2 == 1 && i < BLOCK; i++) wrong += block[i] != 0;
  if (file == NULL) return -1;
  fclose(file);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* path = argc > 1 ? argv[1] : "holes.dat";
  const int blocks = argc > 2 ? atoi(argv[2]) : 100000;
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank == 0) MPI_File_delete(path, MPI_INFO_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File file;
  CHECK(
      MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
  for (int step = 0; step < STEPS; step++) write_step(file, step, blocks, rank, size);
  CHECK(MPI_File_close(&file));
  const long wrong = rank == 0 ? count_wrong(path) : 0;
  if (rank == 0)
    printf("%ld bytes of holes, %ld wrong\n", (long)STEPS * blocks * size * BLOCK, wrong);
  MPI_Finalize();
  return wrong != 0;
}
