/* Several threads of each rank open, write, read and close files at the same time. Prints "rank R:
 * good", or an error.
 *
 * - `open_threads DIRECTORY self`: every thread has files over MPI_COMM_SELF
 * - `open_threads DIRECTORY copies`: every thread has files of all ranks, over its own
 *   communicator; odd ranks start their threads in reverse order
 * - `open_threads DIRECTORY started`: non-blocking calls on several files of one communicator,
 *   while another thread opens files over another communicator */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4
#define TURNS 15
#define PIECE 97
#define PIECES 200

static int rank, ranks;
static const char* folder;
static volatile int wrong;

static void check(int right, const char* what) {
  if (right) return;
  printf("rank %d: %s\n", rank, what);
  wrong = 1;
}

static void fill(char* bytes, int owner, int turn) {
  for (int i = 0; i < PIECE * PIECES; i++) bytes[i] = (char)(owner * 31 + turn * 7 + i % 251);
}

static MPI_File open_one(MPI_Comm comm, const char* kind, int number, int turn, int parts,
                         int part) {
  char name[4096];
  MPI_File file;
  MPI_Datatype turns;
  snprintf(name, sizeof name, "%s/%s-%d-%d", folder, kind, number, turn);
  check(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) ==
            MPI_SUCCESS,
        "open");
  MPI_Type_vector(PIECES, PIECE, PIECE * parts, MPI_BYTE, &turns);
  MPI_Type_commit(&turns);
  check(MPI_File_set_view(file, (MPI_Offset)part * PIECE, MPI_BYTE, turns, "native",
                          MPI_INFO_NULL) == MPI_SUCCESS,
        "set_view");
  MPI_Type_free(&turns);
  return file;
}

/* Writes a file, closes it, and reads the pieces of the next rank. */
static void use(MPI_Comm comm, const char* kind, int number, int turn) {
  static __thread char out[PIECE * PIECES], in[PIECE * PIECES];
  int me, all;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &all);
  fill(out, me + number, turn);
  MPI_File file = open_one(comm, kind, number, turn, all, me);
  check(MPI_File_write_all(file, out, sizeof out, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS,
        "write_all");
  check(MPI_File_close(&file) == MPI_SUCCESS, "close");
  file = open_one(comm, kind, number, turn, all, (me + 1) % all);
  check(MPI_File_read_all(file, in, sizeof in, MPI_BYTE, MPI_STATUS_IGNORE) == MPI_SUCCESS,
        "read_all");
  fill(out, (me + 1) % all + number, turn);
  check(memcmp(in, out, sizeof in) == 0, "other bytes than were written");
  check(MPI_File_close(&file) == MPI_SUCCESS, "close");
}

struct Work {
  MPI_Comm comm;
  const char* kind;
  int number;
};

static void* work(void* argument) {
  const struct Work* mine = argument;
  for (int turn = 0; turn < TURNS && !wrong; turn++)
    use(mine->comm, mine->kind, mine->number, turn);
  return NULL;
}

static void in_threads(const char* kind, int alone, int backwards) {
  struct Work works[THREADS];
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    works[i] = (struct Work){MPI_COMM_SELF, kind, alone ? rank * THREADS + i : i};
    if (!alone) MPI_Comm_dup(MPI_COMM_WORLD, &works[i].comm);
  }
  for (int i = 0; i < THREADS; i++) {
    const int which = backwards ? THREADS - 1 - i : i;
    pthread_create(&threads[which], NULL, work, &works[which]);
    usleep(1000);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS && !alone; i++) MPI_Comm_free(&works[i].comm);
}

static void overlap_requests(void) {
  enum { FILES = 3 };
  static char out[FILES][PIECE * PIECES], in[PIECE * PIECES];
  struct Work other = {MPI_COMM_NULL, "beside", 0};
  pthread_t thread;
  MPI_Comm_dup(MPI_COMM_WORLD, &other.comm);
  pthread_create(&thread, NULL, work, &other);
  for (int turn = 0; turn < TURNS && !wrong; turn++) {
    MPI_File files[FILES];
    MPI_Request requests[FILES];
    for (int i = 0; i < FILES; i++)
      files[i] = open_one(MPI_COMM_WORLD, "started", i, turn, ranks, rank);
    for (int i = 0; i < FILES; i++) {
      fill(out[i], rank + i, turn);
      check(MPI_File_iwrite_all(files[i], out[i], sizeof out[i], MPI_BYTE, &requests[i]) ==
                MPI_SUCCESS,
            "iwrite_all");
    }
    for (int i = 0; i < FILES; i++) {
      const int which = rank % 2 ? FILES - 1 - i : i;
      check(MPI_Wait(&requests[which], MPI_STATUS_IGNORE) == MPI_SUCCESS, "wait");
    }
    for (int i = 0; i < FILES; i++) {
      check(MPI_File_read_at_all(files[i], 0, in, sizeof in, MPI_BYTE, MPI_STATUS_IGNORE) ==
                MPI_SUCCESS,
            "read_at_all");
      check(memcmp(in, out[i], sizeof in) == 0, "other bytes than were written");
      check(MPI_File_close(&files[i]) == MPI_SUCCESS, "close");
    }
  }
  pthread_join(thread, NULL);
  MPI_Comm_free(&other.comm);
}

int main(int argc, char** argv) {
  int level;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  folder = argv[1];
  check(level == MPI_THREAD_MULTIPLE, "no MPI_THREAD_MULTIPLE");
  if (!strcmp(argv[2], "self")) in_threads("self", 1, 0);
  if (!strcmp(argv[2], "copies")) in_threads("copies", 0, rank % 2);
  if (!strcmp(argv[2], "started")) overlap_requests();
  if (!wrong) printf("rank %d: good\n", rank);
  MPI_Finalize();
  return wrong;
}
