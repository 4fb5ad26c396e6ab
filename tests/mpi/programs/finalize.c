/* A file that is open when MPI_Finalize begins. Usage: finalize DIRECTORY close|leave|check
 *
 * - close: the callback of an attribute of MPI_COMM_SELF writes the file's second half and closes
 *   it, as HDF5 does with files that the program has not closed
 * - leave: nothing closes it
 * - check: nothing closes it; the first half is written by small calls, the second one
 *   independently; after MPI_Finalize each rank counts its bytes in the file
 *
 * The attribute is set before the first file is opened. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PIECE 100
#define PIECES 3000

static int rank, ranks;
static MPI_File file;
static char bytes[PIECE * PIECES];

static void need(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  printf("rank %d: %s failed\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void write_half(MPI_Offset half) {
  need(MPI_File_write_at_all(file, half * sizeof bytes, bytes, sizeof bytes, MPI_BYTE,
                             MPI_STATUS_IGNORE),
       "write");
}

static void write_both_ways(void) {
  const int part = 10 * PIECE;
  for (int at = 0; at < (int)sizeof bytes; at += part)
    need(MPI_File_write_at_all(file, at, bytes + at, part, MPI_BYTE, MPI_STATUS_IGNORE), "write");
  need(MPI_File_write_at(file, sizeof bytes, bytes, sizeof bytes, MPI_BYTE, MPI_STATUS_IGNORE),
       "write alone");
}

static void count_own_bytes(const char* directory) {
  char name[4096], piece[PIECE];
  int found = 0;
  snprintf(name, sizeof name, "%s/file", directory);
  const int descriptor = open(name, O_RDONLY);
  for (int i = 0; i < 2 * PIECES; i++)
    if (pread(descriptor, piece, PIECE, ((off_t)i * ranks + rank) * PIECE) == PIECE)
      found += !memcmp(piece, bytes, PIECE);
  close(descriptor);
  printf("rank %d: %d pieces\n", rank, found);
}

static int close_file(MPI_Comm self, int key, void* value, void* extra) {
  write_half(1);
  need(MPI_File_close(&file), "close");
  return MPI_SUCCESS;
}

static void open_interleaved(const char* directory) {
  char name[4096];
  MPI_Datatype piece, turns;
  snprintf(name, sizeof name, "%s/file", directory);
  need(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
       "open");
  MPI_Type_contiguous(PIECE, MPI_BYTE, &piece);
  MPI_Type_create_resized(piece, 0, PIECE * ranks, &turns);
  MPI_Type_commit(&turns);
  need(MPI_File_set_view(file, (MPI_Offset)rank * PIECE, MPI_BYTE, turns, "native", MPI_INFO_NULL),
       "set_view");
  MPI_Type_free(&turns);
  MPI_Type_free(&piece);
}

int main(int argc, char** argv) {
  int key;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  memset(bytes, 'a' + rank, sizeof bytes);
  if (!strcmp(argv[2], "close")) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_file, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  }
  open_interleaved(argv[1]);
  if (!strcmp(argv[2], "check")) {
    write_both_ways();
    MPI_Finalize();
    count_own_bytes(argv[1]);
    return 0;
  }
  write_half(0);
  MPI_Finalize();
  return 0;
}
