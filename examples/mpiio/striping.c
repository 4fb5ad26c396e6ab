/* Hints for the layout of a new file: 4 stripe targets, stripes of 4 MiB. Each rank writes its part
 * of 160,000 integers. Usage: striping [FILE] */
#include <stdlib.h>

#include "check.h"

enum { COUNT = 160000 };

static void print_hint(MPI_Info info, const char* key) {
  char value[MPI_MAX_INFO_VAL + 1];
  int found;
  MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
  printf("%s: %s\n", key, found ? value : "not known to this MPI-IO");
}

static void print_layout(MPI_File file) {
  MPI_Info used;
  CHECK(MPI_File_get_info(file, &used));
  print_hint(used, "striping_factor");
  print_hint(used, "striping_unit");
  MPI_Info_free(&used);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* path = argc > 1 ? argv[1] : "striping.dat";
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int first = (int)((long)COUNT * rank / size),
            count = (int)((long)COUNT * (rank + 1) / size) - first;

  MPI_Info hints;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "striping_factor", "4");
  MPI_Info_set(hints, "striping_unit", "4194304");
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, hints, &file));
  MPI_Info_free(&hints);
  if (rank == 0) print_layout(file);

  int* part = malloc(sizeof(int) * (size_t)(count > 0 ? count : 1));
  for (int i = 0; i < count; i++) part[i] = first + i;
  const MPI_Offset offset = (MPI_Offset)first * (MPI_Offset)sizeof(int);
  CHECK(MPI_File_write_at_all(file, offset, part, count, MPI_INT, MPI_STATUS_IGNORE));
  for (int i = 0; i < count; i++) part[i] = -1;
  CHECK(MPI_File_read_at_all(file, offset, part, count, MPI_INT, MPI_STATUS_IGNORE));
  int wrong = 0, wrong_in_all = 0;
  for (int i = 0; i < count; i++) wrong += part[i] != first + i;
  MPI_Reduce(&wrong, &wrong_in_all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  CHECK(MPI_File_close(&file));
  if (rank == 0) printf("%d integers by %d ranks, %d wrong\n", COUNT, size, wrong_in_all);
  free(part);
  MPI_Finalize();
  return wrong != 0;
}
