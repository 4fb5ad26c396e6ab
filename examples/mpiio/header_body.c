/* A header written by rank 0 alone, and a body written by all ranks together. Usage: header_body
 * [FILE] */
#include <stdint.h>
#include <string.h>

#include "check.h"

enum { CELLS = 100000 };

typedef struct {
  char magic[8];
  uint64_t step, cells, ranks;
} Header;

static double cell(int rank, int i) { return rank + i * 1e-6; }

static void write_file(const char* path, int rank, int size) {
  static double cells[CELLS];
  for (int i = 0; i < CELLS; i++) cells[i] = cell(rank, i);
  MPI_File file;
  CHECK(
      MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file));
  if (rank == 0) {
    const Header header = {"EXAMPLE", 7, CELLS, (uint64_t)size};
    CHECK(MPI_File_write_at(file, 0, &header, sizeof header, MPI_BYTE, MPI_STATUS_IGNORE));
  }
  /* From here on the file is an array of doubles; the individual file pointer counts them. */
  CHECK(MPI_File_set_view(file, sizeof(Header), MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL));
  CHECK(MPI_File_seek(file, (MPI_Offset)rank * CELLS, MPI_SEEK_SET));
  CHECK(MPI_File_write_all(file, cells, CELLS, MPI_DOUBLE, MPI_STATUS_IGNORE));
  CHECK(MPI_File_close(&file));
}

static int wrong_in_file(const char* path, int rank, int size) {
  static double cells[CELLS];
  Header header = {0};
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  CHECK(MPI_File_read_at_all(file, 0, &header, sizeof header, MPI_BYTE, MPI_STATUS_IGNORE));
  const MPI_Offset mine =
      (MPI_Offset)sizeof(Header) + (MPI_Offset)rank * CELLS * (MPI_Offset)sizeof(double);
  CHECK(MPI_File_read_at_all(file, mine, cells, CELLS, MPI_DOUBLE, MPI_STATUS_IGNORE));
  CHECK(MPI_File_close(&file));
  int wrong = memcmp(header.magic, "EXAMPLE", 8) != 0 || header.cells != CELLS ||
              header.ranks != (uint64_t)size;
  for (int i = 0; i < CELLS; i++) wrong += cells[i] != cell(rank, i);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* path = argc > 1 ? argv[1] : "header_body.dat";
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  write_file(path, rank, size);
  const int wrong = wrong_in_file(path, rank, size);
  int wrong_in_all = 0;
  MPI_Reduce(&wrong, &wrong_in_all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0)
    printf("header and %d cells by %d ranks, %d wrong\n", CELLS * size, size, wrong_in_all);
  MPI_Finalize();
  return wrong != 0;
}
