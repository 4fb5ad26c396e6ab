/* Collective calls that use the shared file pointer while some ranks still move it. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks, errors;

#define CHECK(call)                                        \
  do {                                                     \
    int code = (call), length;                             \
    char text[MPI_MAX_ERROR_STRING];                       \
    if (code == MPI_SUCCESS) break;                        \
    MPI_Error_string(code, text, &length);                 \
    printf("rank %d line %d: %s\n", rank, __LINE__, text); \
    errors++;                                              \
  } while (0)

static void expect(MPI_Offset found, MPI_Offset expected, const char* what) {
  if (found == expected) return;
  printf("rank %d: %s is %lld, not %lld\n", rank, what, (long long)found, (long long)expected);
  errors++;
}

/* Rank 0 calls the next function long before the other ranks have moved the pointer. */
static void write_late(MPI_File file) {
  char bytes[10];
  memset(bytes, 'a' + rank, sizeof bytes);
  if (rank > 0) usleep(200000);
  CHECK(MPI_File_write_shared(file, bytes, sizeof bytes, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void seek_to(MPI_File file, int whence, const char* what) {
  MPI_Offset position = -1;
  write_late(file);
  CHECK(MPI_File_seek_shared(file, 5, whence));
  CHECK(MPI_File_get_position_shared(file, &position));
  expect(position, 10 * ranks + 5, what);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void seek_in(const char* path) {
  MPI_File file;
  CHECK(MPI_File_open(MPI_COMM_WORLD, path,
                      MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &file));
  seek_to(file, MPI_SEEK_CUR, "the shared pointer after MPI_SEEK_CUR");
  CHECK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  CHECK(MPI_File_set_size(file, 0));
  seek_to(file, MPI_SEEK_END, "the shared pointer after MPI_SEEK_END");
  CHECK(MPI_File_close(&file));
}

static void set_view_in(const char* path) {
  MPI_File file;
  MPI_Offset displacement = -1;
  MPI_Datatype etype, filetype;
  char representation[MPI_MAX_DATAREP_STRING];
  CHECK(MPI_File_open(
      MPI_COMM_WORLD, path,
      MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL | MPI_MODE_DELETE_ON_CLOSE,
      MPI_INFO_NULL, &file));
  write_late(file);
  CHECK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native",
                          MPI_INFO_NULL));
  CHECK(MPI_File_get_view(file, &displacement, &etype, &filetype, representation));
  expect(displacement, 10 * ranks, "the displacement of the view");
  CHECK(MPI_File_close(&file));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  seek_in(argv[1]);
  set_view_in(argv[1]);
  int all = 0;
  MPI_Reduce(&errors, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("No Errors\n");
  MPI_Finalize();
  return errors != 0;
}
