/* Writes that hints delay. Byte number i of the file is always i * 7 + i / 256.
 *
 * - `kept DIRECTORY behind`: small independent writes; after a barrier each rank reads its
 *   neighbour's slots
 * - `kept DIRECTORY merged`: collective writes of four arrays, blocking and not, among other calls
 * - `kept DIRECTORY left`: both, and the file is never closed */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define SLOT 8
#define SLOTS 500
#define ROWS 20

static int rank, ranks;
static MPI_File file;

static void need(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length;
  MPI_Error_string(code, text, &length);
  printf("rank %d: %s: %s\n", rank, what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void make(unsigned char* bytes, MPI_Offset from, int count) {
  for (MPI_Offset i = from; i < from + count; i++)
    bytes[i - from] = (unsigned char)(i * 7 + i / 256);
}

static void check(const unsigned char* bytes, MPI_Offset from, int count, const char* what) {
  unsigned char right[1 << 16];
  make(right, from, count);
  printf("rank %d: %s: %s\n", rank, what,
         memcmp(bytes, right, (size_t)count) ? "other bytes" : "same");
}

/* Slots are distributed round-robin and written from the last to the first. */
static void write_slots(MPI_Offset base) {
  unsigned char bytes[SLOT];
  for (int i = SLOTS - 1; i >= 0; i--) {
    MPI_Offset at = base + ((MPI_Offset)i * ranks + rank) * SLOT;
    make(bytes, at, SLOT);
    need(MPI_File_write_at(file, at, bytes, SLOT, MPI_BYTE, MPI_STATUS_IGNORE), "write_at");
  }
}

static void read_slot_of_neighbour(int slot) {
  unsigned char bytes[SLOT] = "";
  MPI_Offset at = ((MPI_Offset)slot * ranks + (rank + 1) % ranks) * SLOT;
  need(MPI_File_read_at(file, at, bytes, SLOT, MPI_BYTE, MPI_STATUS_IGNORE), "read_at");
  check(bytes, at, SLOT, "slot of the neighbour");
}

static void behind(void) {
  MPI_Offset size;
  write_slots(0);
  MPI_Barrier(MPI_COMM_WORLD); /* after it the neighbour may read */
  read_slot_of_neighbour(0);
  read_slot_of_neighbour(SLOTS - 1);
  need(MPI_File_get_size(file, &size), "get_size");
  printf("rank %d: size: %s\n", rank, size == (MPI_Offset)ranks * SLOT * SLOTS ? "right" : "wrong");
}

/* Writes an array whose rows are distributed round-robin. */
static void write_array(int array, int request) {
  unsigned char bytes[ROWS * SLOT];
  MPI_Offset begin = (MPI_Offset)array * ROWS * SLOT * ranks;
  MPI_Datatype rows;
  MPI_Status status;
  MPI_Type_vector(ROWS, SLOT, SLOT * ranks, MPI_BYTE, &rows);
  MPI_Type_commit(&rows);
  need(MPI_File_set_view(file, begin + rank * SLOT, MPI_BYTE, rows, "native", MPI_INFO_NULL),
       "set_view");
  for (int row = 0; row < ROWS; row++)
    make(bytes + row * SLOT, begin + (row * ranks + rank) * SLOT, SLOT);
  if (request) {
    MPI_Request started;
    need(MPI_File_iwrite_at_all(file, 0, bytes, sizeof bytes, MPI_BYTE, &started), "iwrite_at_all");
    need(MPI_Wait(&started, &status), "Wait");
  } else {
    need(MPI_File_write_all(file, bytes, sizeof bytes, MPI_BYTE, &status), "write_all");
  }
  int count;
  MPI_Get_count(&status, MPI_BYTE, &count);
  if (count != (int)sizeof bytes) printf("rank %d: array %d: %d bytes\n", rank, array, count);
  memset(bytes, 0, sizeof bytes); /* after the call the program may reuse the buffer */
  MPI_Type_free(&rows);
  need(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL), "set_view");
}

static void write_merged(void) {
  unsigned char bytes[4 * ROWS * SLOT * 64];
  int all = 4 * ROWS * SLOT * ranks;
  for (int array = 0; array < 4; array++) {
    write_array(array, array % 2);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  memset(bytes, 0, SLOT);
  need(MPI_File_read_at(file, rank * SLOT, bytes, SLOT, MPI_BYTE, MPI_STATUS_IGNORE), "read_at");
  check(bytes, rank * SLOT, SLOT, "own row");
  need(MPI_File_read_at_all(file, 0, bytes, all, MPI_BYTE, MPI_STATUS_IGNORE), "read_at_all");
  check(bytes, 0, all, "all arrays");
}

int main(int argc, char** argv) {
  char name[4096];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 3) return 2;
  snprintf(name, sizeof name, "%s/kept", argv[1]);
  need(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
       "open");
  if (!strcmp(argv[2], "behind")) behind();
  if (!strcmp(argv[2], "merged")) write_merged();
  if (!strcmp(argv[2], "left")) {
    for (int array = 0; array < 4; array++) write_array(array, 0);
    write_slots((MPI_Offset)4 * ROWS * SLOT * ranks);
  } else {
    need(MPI_File_close(&file), "close");
  }
  MPI_Finalize();
  return 0;
}
