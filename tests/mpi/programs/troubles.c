/* Collective calls with dead or late ranks, full disks and large files. Each rank prints "rank R: "
 * and the result of its calls. Usage, after the program's name and DIRECTORY:
 *
 * - killed CALL RANK...: the ranks are killed during calls (CALL: write_all, write_at_all,
 *   iwrite_all, split, open); RANK none: runs until another error occurs
 * - orphaned - RANK...: the ranks are killed after independent writes, before they close the file
 * - steady: short writes; rank 0 waits after some until a test has stopped other ranks
 * - late: rank 1 calls a write some seconds after the others
 * - late message: rank 2 is late, and rank 1 waits for its message before it calls the write
 * - late_open: rank 1 opens the file some seconds after the others
 * - full MANNER: writes more bytes than fit (MANNER: pieces, blocks)
 * - far: accesses bytes beyond 2^40
 * - large: rank 0 writes and reads more than 2^31 bytes in one call
 * - append: all ranks open a file to append to it */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define PIECE 100
#define BLOCK (1 << 20)

static int rank, ranks, left, dies;
static const char* how;
static char name[4096], bytes[BLOCK], read_back[BLOCK];
static MPI_File file, another;

static int is(const char* word) { return strcmp(how, word) == 0; }

static void say(const char* what, int code) {
  int class = 0, length;
  char text[MPI_MAX_ERROR_STRING + 1] = "good";
  MPI_Error_class(code, &class);
  if (code != MPI_SUCCESS) MPI_Error_string(code, text, &length);
  printf("rank %d: %s: %s%s\n", rank, what, class == MPI_ERR_NO_SPACE ? "MPI_ERR_NO_SPACE: " : "",
         text);
  fflush(stdout);
}

static void need(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  say(what, code);
  _exit(1);
}

/* Returns the path of a file beside the other one, by which a test and a rank synchronise. */
static const char* note(const char* word) {
  static char path[4200];
  snprintf(path, sizeof path, "%.*s/%s", (int)(strrchr(name, '/') - name), name, word);
  return path;
}

static void create_note(const char* word) { close(open(note(word), O_CREAT | O_WRONLY, 0666)); }

static void await_note(const char* word) {
  while (access(note(word), F_OK) != 0) usleep(10000);
}

/* Sets a view in which the pieces of all ranks are interleaved. */
static void set_turns(void) {
  MPI_Datatype turns;
  MPI_Type_vector(BLOCK / PIECE, PIECE, PIECE * ranks, MPI_BYTE, &turns);
  MPI_Type_commit(&turns);
  need(MPI_File_set_view(file, (MPI_Offset)rank * PIECE, MPI_BYTE, turns, "native", MPI_INFO_NULL),
       "set_view");
  MPI_Type_free(&turns);
}

/* Exits when all survivors are ready. Each creates a file, because MPI is not usable any more. */
static void leave_together(void) {
  char mark[4200];
  for (int i = 0, marked = 0; marked < left && i < 12000; i++) {
    snprintf(mark, sizeof mark, "%s-%d", name, rank);
    close(open(mark, O_CREAT | O_WRONLY, 0666));
    usleep(10000);
    marked = 0;
    for (int other = 0; other < ranks; other++) {
      snprintf(mark, sizeof mark, "%s-%d", name, other);
      marked += access(mark, F_OK) == 0;
    }
  }
  usleep(100000); /* the launcher may end all ranks after the first exit */
  _exit(0);
}

static int write_together(MPI_Offset at) {
  MPI_Request request;
  int code;
  if (is("open")) {
    code = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &another);
    return code != MPI_SUCCESS ? code : MPI_File_close(&another);
  }
  if (is("write_at_all"))
    return MPI_File_write_at_all(file, at, bytes, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  if (is("split")) {
    code = MPI_File_write_all_begin(file, bytes, BLOCK, MPI_BYTE);
    return code != MPI_SUCCESS ? code : MPI_File_write_all_end(file, bytes, MPI_STATUS_IGNORE);
  }
  if (is("iwrite_all")) {
    code = MPI_File_iwrite_all(file, bytes, BLOCK, MPI_BYTE, &request);
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return MPI_File_write_all(file, bytes, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void die(int signal) {
  (void)signal;
  kill(getpid(), SIGKILL);
}

static void write_until_death(void) {
  int code = MPI_SUCCESS;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  set_turns();
  signal(SIGALRM, die);
  if (dies) setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 150000}}, NULL);
  for (int i = 0; code == MPI_SUCCESS; i++) {
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    code = write_together(0);
    if (rank == 0 && i == 2) create_note("begun"); /* all ranks have written */
  }
  say("write", code);
  say("the next write", write_together(0));
  leave_together(); /* MPI_Finalize would wait for the killed rank */
}

static void write_alone_and_die(void) {
  set_turns();
  for (int i = 0; i < BLOCK / PIECE; i++)
    need(MPI_File_write(file, bytes, PIECE, MPI_BYTE, MPI_STATUS_IGNORE), "write");
  if (dies) die(SIGKILL);
  say("close", MPI_File_close(&file));
  leave_together();
}

static void steady(void) {
  int code = MPI_SUCCESS;
  set_turns();
  for (int i = 0; i < 40 && code == MPI_SUCCESS; i++) {
    usleep(50000);
    MPI_File_seek(file, 0, MPI_SEEK_SET);
    code = write_together(0);
    if (rank == 0 && i == 2) create_note("begun"), await_note("stopped");
  }
  say("writes", code);
  say("close", MPI_File_close(&file));
  leave_together(); /* MPICH before 4.2 can hang in MPI_Finalize over TCP */
}

/* Waits until a file appears; opens it, because it may be a FIFO. */
static void be_late(int late_rank) {
  if (rank != late_rank) return;
  await_note("troubles-come");
  close(open(note("troubles-come"), O_RDONLY));
}

static void late(void) {
  int number = 0;
  set_turns();
  MPI_Barrier(MPI_COMM_WORLD); /* those in time come together */
  if (is("message")) {
    be_late(2);
    if (rank == 2) MPI_Send(&number, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&number, 1, MPI_INT, 2, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    be_late(1);
  }
  say("write", write_together(0));
}

static void full(void) {
  if (is("pieces"))
    set_turns();
  else
    need(MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, MPI_BYTE, "native",
                           MPI_INFO_NULL),
         "set_view");
  say("write", write_together(0));
  MPI_File_set_size(file, 0);
  need(MPI_File_seek(file, 0, MPI_SEEK_SET), "seek");
  say("a small write", MPI_File_write_all(file, bytes, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void far(void) {
  const MPI_Offset from = ((MPI_Offset)1 << 41) + 12345;
  MPI_Offset size, end;
  MPI_Datatype turns;
  MPI_Type_vector(BLOCK / PIECE, PIECE, PIECE * ranks, MPI_BYTE, &turns);
  MPI_Type_commit(&turns);
  need(MPI_File_set_view(file, from + (MPI_Offset)rank * PIECE, MPI_BYTE, turns, "native",
                         MPI_INFO_NULL),
       "set_view");
  say("write",
      MPI_File_write_at_all(file, 0, bytes, BLOCK / PIECE * PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
  say("read",
      MPI_File_read_at_all(file, 0, read_back, BLOCK / PIECE * PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
  MPI_File_get_size(file, &size);
  MPI_File_get_byte_offset(file, 0, &end);
  int same = memcmp(bytes, read_back, BLOCK / PIECE * PIECE) == 0;
  printf("rank %d: %s, begins %+lld, size %+lld\n", rank, same ? "same" : "different",
         (long long)(end - from), (long long)(size - from));
  MPI_Type_free(&turns);
}

static char* map_memory(size_t size) {
  char* memory =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) _exit(2);
  return memory;
}

static void large(void) {
  enum { MARKS = 64, WORD = 8 };
  const int count = (1 << 28) + 1001 + rank; /* 8 bytes each */
  const int mine = rank == 0 ? count : 1;
  const size_t size = (size_t)mine * WORD;
  char *memory = map_memory(size), *again = map_memory(size);
  MPI_Status status;
  int moved;
  for (int i = 0; i < MARKS; i++) memory[(size - 1) / (MARKS - 1) * i] = (char)(i + 1);
  need(MPI_File_set_view(file, rank == 0 ? 0 : (MPI_Offset)count * WORD + rank * WORD, MPI_DOUBLE,
                         MPI_DOUBLE, "native", MPI_INFO_NULL),
       "set_view");
  say("write", MPI_File_write_at_all(file, 0, memory, mine, MPI_DOUBLE, &status));
  MPI_Get_count(&status, MPI_DOUBLE, &moved);
  printf("rank %d: wrote %s\n", rank, moved == mine ? "all" : "less");
  say("read", MPI_File_read_at_all(file, 0, again, mine, MPI_DOUBLE, &status));
  MPI_Get_count(&status, MPI_DOUBLE, &moved);
  printf("rank %d: read %s, %s\n", rank, moved == mine ? "all" : "less",
         memcmp(memory, again, size) == 0 ? "same" : "different");
}

/* A file of 1,000 bytes has been made by the test. */
static int append(void) {
  const int code =
      MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_APPEND | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_Offset position = -1;
  say("append", code);
  if (code == MPI_SUCCESS) {
    need(MPI_File_get_position(file, &position), "get_position");
    printf("rank %d: position %lld\n", rank, (long long)position);
    say("close", MPI_File_close(&file));
  }
  MPI_Finalize();
  return 0;
}

int main(int argc, char** argv) {
  char process[64];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  how = argc > 3 ? argv[3] : "";
  for (int i = 4; i < argc; i++) dies |= atoi(argv[i]) == rank;
  left = argc > 4 ? ranks - (argc - 4) : ranks;
  memset(bytes, 'a' + rank, sizeof bytes);
  snprintf(name, sizeof name, "%s/troubles", argv[1]);
  snprintf(process, sizeof process, "process-%d", (int)getpid());
  create_note(process); /* a test looks for its shared memory */
  if (!strcmp(argv[2], "late_open")) {
    MPI_Barrier(MPI_COMM_WORLD);
    be_late(1);
  }
  if (!strcmp(argv[2], "append")) return append();
  need(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file),
       "open");
  if (!strcmp(argv[2], "killed")) write_until_death();
  if (!strcmp(argv[2], "orphaned")) write_alone_and_die();
  if (!strcmp(argv[2], "steady")) steady();
  if (!strcmp(argv[2], "late")) late();
  if (!strcmp(argv[2], "full")) full();
  if (!strcmp(argv[2], "far")) far();
  if (!strcmp(argv[2], "large")) large();
  say("close", MPI_File_close(&file));
  MPI_Finalize();
  return 0;
}
