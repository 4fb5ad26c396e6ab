/* Series of small reads of MPI-IO, interrupted by changes of the file that are announced to a
 * rank in different ways. Prints each change with the number of old bytes that ranks read after it,
 * and the system calls of a series.
 *
 *   small_reads DIRECTORY */
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kPiece = 256, kCalls = 2000, kSome = 20 };

static int rank, ranks, descriptor;
static MPI_File file, own; /* of all ranks, and of this rank alone */
static unsigned char now;  /* all bytes of the file */
static long place;         /* of the next read, in pieces of all ranks */

static size_t size(void) { return (size_t)kPiece * kCalls * (size_t)ranks; }

/* Fills the file with other bytes past MPI-IO. */
static void change(void) {
  unsigned char* bytes = malloc(size());
  memset(bytes, ++now, size());
  if (pwrite(descriptor, bytes, size(), 0) != (ssize_t)size()) MPI_Abort(MPI_COMM_WORLD, 1);
  free(bytes);
}

/* Reads some pieces in turn with the other ranks. Returns the number of wrong bytes. */
static long read_some(int calls, int collective) {
  unsigned char piece[kPiece];
  long wrong = 0;
  for (int i = 0; i < calls; i++, place = (place + 1) % kCalls) {
    MPI_Offset at = (MPI_Offset)(place * ranks + rank) * kPiece;
    memset(piece, 0, sizeof piece);
    if (collective)
      MPI_File_read_at_all(file, at, piece, kPiece, MPI_BYTE, MPI_STATUS_IGNORE);
    else
      MPI_File_read_at(file, at, piece, kPiece, MPI_BYTE, MPI_STATUS_IGNORE);
    for (int k = 0; k < kPiece; k++) wrong += piece[k] != now;
  }
  return wrong;
}

static void announce_by_message(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) change();
  MPI_Bcast(&now, 1, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void announce_by_requests(void) {
  MPI_Request requests[256];
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    change();
    for (int to = 1; to < ranks; to++) MPI_Send(&now, 1, MPI_BYTE, to, 0, MPI_COMM_WORLD);
  } else {
    MPI_Irecv(&now, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, requests);
    for (int done = 0; !done;) MPI_Test(requests, &done, MPI_STATUS_IGNORE);
  }
}

/* Reads, lets `make` change the file, reads on. */
static void check(const char* name, void (*make)(void)) {
  long wrong = 0, all = 0;
  for (int round = 0; round < 40; round++) {
    announce_by_message();
    wrong += read_some(kSome, round % 2);
    make();
    wrong += read_some(kSome, round % 2);
  }
  MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %ld old bytes\n", name, all);
}

/* Each rank writes the pieces that it reads next. */
static void write_next(MPI_File to, int collective) {
  unsigned char piece[kPiece];
  memset(piece, ++now, sizeof piece);
  for (int i = 0; i < kSome; i++) {
    MPI_Offset at = (MPI_Offset)((place + i) % kCalls * ranks + rank) * kPiece;
    if (collective)
      MPI_File_write_at_all(to, at, piece, kPiece, MPI_BYTE, MPI_STATUS_IGNORE);
    else
      MPI_File_write_at(to, at, piece, kPiece, MPI_BYTE, MPI_STATUS_IGNORE);
  }
}

static void write_by_other_handle(void) { write_next(own, 0); }
static void write_alone(void) { write_next(file, 0); }
static void write_together(void) { write_next(file, 1); }

static void write_and_sync(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) change();
  MPI_File_sync(file);
  now = (unsigned char)(rank == 0 ? now : now + 1);
}

static long read_calls(void) {
  char line[80];
  long calls = 0;
  FILE* io = fopen("/proc/self/io", "r");
  while (io && fgets(line, sizeof line, io)) sscanf(line, "syscr: %ld", &calls);
  if (io) fclose(io);
  return calls;
}

static void count(const char* name, int collective) {
  MPI_Barrier(MPI_COMM_WORLD);
  long before = read_calls(), all = 0;
  place = 0;
  long wrong = read_some(kCalls, collective), made = read_calls() - before;
  MPI_Reduce(&made, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %ld calls, %ld wrong\n", name, all, wrong);
}

int main(int argc, char** argv) {
  char path[PATH_MAX];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(path, sizeof path, "%s/small_reads", argv[1]);
  descriptor = open(path, O_RDWR | O_CREAT, 0600);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &own);
  announce_by_message();
  count("collective", 1);
  count("independent", 0);
  check("message", announce_by_message);
  check("request", announce_by_requests);
  check("sync", write_and_sync);
  check("other handle", write_by_other_handle);
  check("own writes", write_alone);
  check("collective writes", write_together);
  announce_by_message();
  place = kCalls - kSome; /* the last reads end with the file, which is cut there */
  long whole = read_some(kSome - 1, 1), cut = 0;
  MPI_File_set_size(file, (MPI_Offset)size() - 1);
  MPI_Status status;
  int got = 0;
  unsigned char piece[kPiece];
  MPI_File_read_at_all(file, (MPI_Offset)size() - (ranks - rank) * kPiece, piece, kPiece, MPI_BYTE,
                       &status);
  MPI_Get_count(&status, MPI_BYTE, &got);
  cut = got - (rank == ranks - 1 ? kPiece - 1 : kPiece);
  if (rank == ranks - 1) printf("end: %ld, %ld\n", whole, cut);
  MPI_File_close(&own);
  MPI_File_close(&file);
  MPI_Finalize();
}
