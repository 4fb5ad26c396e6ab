/* Times collective writes and reads of MPI-IO, each beside the limit: one process that moves the
 * same bytes in 8 MiB pieces.
 *
 *   mpiio DIRECTORY MEBIBYTES REPETITIONS PATTERN...     interleaved:64 has pieces of 64 bytes
 *
 * calls:BYTES, turns:BYTES and random:BYTES make many collective calls of BYTES per rank, at most
 * 2,000: one after the other in a rank's part of the file, in turn with the other ranks, or at
 * shuffled places.
 *
 * MPIIO_HINTS="key=value;..." goes into the file's info. Prints, per repetition: pattern,
 * operation, seconds, the limit's seconds, calls of write (or read) of all ranks. The file exists
 * and buffers are touched before the first timed call; waiting ranks sleep; the bytes written are
 * verified. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kPiece = 8 << 20, kMostRanks = 256, kMostCalls = 2000, kStep = 7919 /* a prime */ };

/* Memory shared by the ranks: a barrier that sleeps (an MPI's own barrier spins, which takes the
 * processor from a busy rank), and their times. */
typedef struct {
  _Atomic int arrived, round;
  double ends[kMostRanks];
  long calls[kMostRanks];
} Shared;

static Shared* shared;
static int rank, ranks;
static size_t total, mine; /* bytes of the file, of this rank */
static size_t call_bytes;  /* of this rank's part of a collective call; 0: all */
static int shuffled;       /* the calls are in another order than their bytes */
static unsigned char* buffer;
static char path[PATH_MAX];
static int failures;

static double clock_of(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double now(void) { return clock_of(CLOCK_MONOTONIC); }

/* Returns the processor time of all threads of this rank. */
static double processor_time(void) { return clock_of(CLOCK_PROCESS_CPUTIME_ID); }

static void barrier(void) {
  int round = shared->round;
  if (++shared->arrived == ranks) {
    shared->arrived = 0;
    shared->round++;
    syscall(SYS_futex, &shared->round, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return;
  }
  while (shared->round == round)
    syscall(SYS_futex, &shared->round, FUTEX_WAIT, round, NULL, NULL, 0);
}

static void share(const char* directory) {
  char name[PATH_MAX];
  snprintf(name, sizeof name, "%s/mpiio-bench-barrier", directory);
  int file = open(name, O_RDWR | O_CREAT, 0600);
  if (ftruncate(file, sizeof *shared) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    memset(shared, 0, sizeof *shared);
    unlink(name);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Returns the number of calls of the write (or read) family so far. */
static long system_calls(int writes) {
  char line[80];
  long calls = 0;
  FILE* io = fopen("/proc/self/io", "r");
  while (io && fgets(line, sizeof line, io))
    sscanf(line, writes ? "syscw: %ld" : "syscr: %ld", &calls);
  if (io) fclose(io);
  return calls;
}

static unsigned char content(int of, size_t i) {
  return (unsigned char)(i * 7 + i / 251 + (size_t)of * 31);
}

static void fill(void) {
  for (size_t i = 0; i < mine; i++) buffer[i] = content(rank, i);
}

static void verify(const char* what) {
  for (size_t i = 0; i < mine; i++) {
    if (buffer[i] == content(rank, i)) continue;
    fprintf(stderr, "%s: rank %d, byte %zu is wrong\n", what, rank, i);
    failures++;
    return;
  }
}

/* ---- patterns: the file type of this rank ---- */

static MPI_Datatype make_interleaved(size_t piece) {
  MPI_Datatype one, type;
  int length = (int)(piece / sizeof(double));
  MPI_Aint place = (MPI_Aint)piece * rank;
  MPI_Type_create_hindexed(1, &length, &place, MPI_DOUBLE, &one);
  MPI_Type_create_resized(one, 0, (MPI_Aint)(piece * (size_t)ranks), &type);
  MPI_Type_free(&one);
  total = total / (piece * (size_t)ranks) * piece * (size_t)ranks;
  return type;
}

static MPI_Datatype array(int dimensions, const int* sizes, const int* counts, const int* starts,
                          MPI_Datatype element) {
  MPI_Datatype type;
  MPI_Type_create_subarray(dimensions, sizes, counts, starts, MPI_ORDER_C, element, &type);
  return type;
}

/* Blocks of a 3-D domain with rows of `row` doubles; `variables` consecutive domains. Rows are
 * divided first, so that rows of different ranks alternate. */
static MPI_Datatype blocks(size_t row, int variables) {
  int parts[3] = {0}, counts[4] = {variables, 0, (int)row, (int)row}, sizes[4], starts[4] = {0},
      rest = rank;
  MPI_Dims_create(ranks, 3, parts);
  int most = parts[0];
  parts[0] = parts[2], parts[2] = most;
  counts[1] = (int)(total / (size_t)ranks / (row * row * sizeof(double) * (size_t)variables));
  if (counts[1] == 0) counts[1] = 1;
  sizes[0] = variables;
  for (int d = 2; d >= 0; d--) {
    starts[d + 1] = rest % parts[d] * counts[d + 1];
    sizes[d + 1] = counts[d + 1] * parts[d];
    rest /= parts[d];
  }
  total = (size_t)ranks * (size_t)variables * (size_t)counts[1] * row * row * sizeof(double);
  return array(4, sizes, counts, starts, MPI_DOUBLE);
}

/* As in BTIO: a rank has a diagonal of cells; 5 doubles per point. */
static MPI_Datatype diagonal(void) {
  int cells = ranks, lengths[kMostRanks], edge = 12 * ((63 / 12) + 1);
  size_t plane = (size_t)edge * (size_t)edge * 40;
  int depth = (int)(total / plane / (size_t)cells), sizes[3], counts[3], starts[3] = {0};
  if (depth == 0) depth = 1;
  sizes[0] = depth * cells, sizes[1] = edge / cells * cells, sizes[2] = edge;
  counts[0] = depth, counts[1] = edge / cells, counts[2] = edge;
  total = (size_t)sizes[0] * (size_t)sizes[1] * (size_t)sizes[2] * 40;
  MPI_Datatype point, types[kMostRanks], type;
  MPI_Aint places[kMostRanks] = {0};
  MPI_Type_contiguous(5, MPI_DOUBLE, &point);
  for (int i = 0; i < cells; i++) {
    starts[0] = i * depth, starts[1] = (i + rank) % cells * counts[1];
    types[i] = array(3, sizes, counts, starts, point);
    lengths[i] = 1;
  }
  MPI_Type_create_struct(cells, lengths, places, types, &type);
  for (int i = 0; i < cells; i++) MPI_Type_free(&types[i]);
  MPI_Type_free(&point);
  return type;
}

static MPI_Datatype contiguous(void) {
  size_t part = total / (size_t)ranks / sizeof(double) * sizeof(double);
  total = part * (size_t)ranks;
  return make_interleaved(part);
}

/* Many calls of `piece` bytes. */
static MPI_Datatype make_calls(const char* name, size_t piece) {
  size_t round = piece * (size_t)ranks, rounds = total / round;
  if (rounds > kMostCalls) rounds = kMostCalls;
  if (rounds == 0) rounds = 1;
  total = round * rounds;
  call_bytes = piece;
  shuffled = !strncmp(name, "random", 6);
  return strncmp(name, "turns", 5) ? contiguous() : make_interleaved(piece);
}

static MPI_Datatype pattern(const char* name) {
  size_t piece = strchr(name, ':') ? strtoul(strchr(name, ':') + 1, NULL, 10) : 64;
  call_bytes = 0;
  if (!strncmp(name, "calls", 5) || !strncmp(name, "turns", 5) || !strncmp(name, "random", 6))
    return make_calls(name, piece);
  if (!strncmp(name, "interleaved", 11) || !strncmp(name, "overlap", 7))
    return make_interleaved(piece);
  if (!strncmp(name, "blocks", 6)) return blocks(piece, 1);
  if (!strcmp(name, "s3d")) return blocks(50, 16);
  if (!strcmp(name, "btio")) return diagonal();
  if (!strcmp(name, "contiguous")) return contiguous();
  fprintf(stderr,
          "mpiio: no pattern '%s'; interleaved:BYTES overlap:BYTES blocks:DOUBLES s3d btio "
          "contiguous calls:BYTES turns:BYTES random:BYTES\n",
          name);
  MPI_Abort(MPI_COMM_WORLD, 2);
  return MPI_DATATYPE_NULL;
}

/* ---- measuring ---- */

/* Moves all bytes of the file in one process; the others sleep. */
static double limit(int writes) {
  barrier();
  double begin = now();
  if (rank == 0) {
    static unsigned char* piece;
    if (!piece) memset(piece = malloc(kPiece), 1, kPiece);
    begin = now();
    int file = open(path, writes ? O_WRONLY : O_RDONLY);
    for (size_t at = 0; at < total; at += kPiece) {
      size_t length = total - at < kPiece ? total - at : kPiece;
      ssize_t moved =
          writes ? pwrite(file, piece, length, (off_t)at) : pread(file, piece, length, (off_t)at);
      if (moved != (ssize_t)length) failures++;
    }
    close(file);
  }
  double seconds = now() - begin;
  barrier();
  return seconds;
}

/* Makes the collective calls of a pattern. Returns the number of errors. */
static int move_all(MPI_File file, int writes) {
  size_t bytes = call_bytes ? call_bytes : mine, calls = mine / bytes;
  int errors = 0, count = (int)(bytes / 8);
  for (size_t i = 0; i < calls; i++) {
    size_t at = (shuffled ? i * kStep % calls : i) * bytes;
    void* part = buffer + at;
    MPI_Offset offset = (MPI_Offset)(at / 8);
    int code = writes
                   ? MPI_File_write_at_all(file, offset, part, count, MPI_DOUBLE, MPI_STATUS_IGNORE)
                   : MPI_File_read_at_all(file, offset, part, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) errors++;
  }
  return errors;
}

/* Measures the calls of a pattern: the slowest rank's seconds, and the system calls of all. */
static double collective(MPI_File file, int writes, long* calls) {
  barrier();
  long before = system_calls(writes);
  double begin = now();
  failures += move_all(file, writes);
  shared->ends[rank] = now() - begin;
  shared->calls[rank] = system_calls(writes) - before;
  barrier();
  double slowest = 0;
  *calls = 0;
  for (int r = 0; r < ranks; r++) {
    if (shared->ends[r] > slowest) slowest = shared->ends[r];
    *calls += shared->calls[r];
  }
  barrier();
  return slowest;
}

static volatile double sink;

/* Computes for a fixed amount of work, not of time. */
static void compute(long amount) {
  for (long i = 0; i < amount; i++) sink += 1e-9 * (double)i;
}

static long work_per_second(void) {
  static long rate;
  const long some = 20 * 1000 * 1000;
  double begin = processor_time();
  if (rate == 0) compute(some);
  if (rate == 0) rate = (long)((double)some / (processor_time() - begin));
  return rate;
}

/* Returns the least seconds of computing and writing, if no processor ever waits: the work of all
 * ranks divided by the processors, but not less than one rank's computation. */
static double least(double alone, double writing) {
  double all = 0, processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
  shared->ends[rank] = writing;
  barrier();
  for (int r = 0; r < ranks; r++) all += alone + shared->ends[r];
  barrier();
  return all / processors > alone ? all / processors : alone;
}

/* Overlaps iwrite_all with a computation of equal length: prints the time of both, of one alone,
 * and the least possible. */

static void overlap(MPI_File file, const char* name) {
  long calls, rate = work_per_second();
  double processor = processor_time(), alone = collective(file, 1, &calls), slowest = 0;
  double floor = least(alone, processor_time() - processor);
  MPI_Request request;
  barrier();
  double begin = now();
  MPI_File_iwrite_at_all(file, 0, buffer, (int)(mine / 8), MPI_DOUBLE, &request);
  compute((long)(alone * (double)rate));
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  shared->ends[rank] = now() - begin;
  barrier();
  for (int r = 0; r < ranks; r++) slowest = shared->ends[r] > slowest ? shared->ends[r] : slowest;
  if (rank == 0)
    printf("%s both %.6f %.6f 0\n%s floor %.6f %.6f 0\n", name, slowest, alone, name, floor, alone);
  barrier();
}

static MPI_Info hints(void) {
  const char* given = getenv("MPIIO_HINTS");
  MPI_Info info = MPI_INFO_NULL;
  if (!given || !*given) return info;
  char *text = strdup(given), *rest = text, *item;
  MPI_Info_create(&info);
  while ((item = strsep(&rest, ";"))) {
    char* value = strchr(item, '=');
    if (value) *value++ = 0, MPI_Info_set(info, item, value);
  }
  free(text);
  return info;
}

static void measure(const char* name, const char* directory, size_t bytes, int repetitions) {
  MPI_File file;
  MPI_Info info = hints();
  total = bytes;
  MPI_Datatype type = pattern(name);
  MPI_Type_commit(&type);
  mine = total / (size_t)ranks;
  buffer = malloc(mine);
  fill();
  snprintf(path, sizeof path, "%s/mpiio-bench-%d", directory, ranks);
  if (rank == 0) close(open(path, O_CREAT | O_RDWR, 0600));
  limit(1); /* allocates the file's pages */
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, info, &file);
  MPI_File_set_view(file, 0, MPI_DOUBLE, type, "native", MPI_INFO_NULL);
  for (int i = 0; i <= repetitions; i++) {
    if (!strncmp(name, "overlap", 7)) {
      overlap(file, name);
      continue;
    }
    for (int writes = 1; writes >= 0; writes--) {
      long calls;
      double alone = limit(writes), all = collective(file, writes, &calls);
      if (rank == 0 && i > 0)
        printf("%s %s %.6f %.6f %ld\n", name, writes ? "write" : "read", all, alone, calls);
    }
    if (i == 0) verify(name); /* checks the first read, and with it the write before it */
    if (i == 0) memset(buffer, 0, mine);
    if (i == 0) failures += move_all(file, 0);
    if (i == 0) verify(name);
  }
  MPI_File_close(&file);
  MPI_Type_free(&type);
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  free(buffer);
  if (rank == 0) unlink(path);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 5) {
    fprintf(stderr, "usage: mpiio DIRECTORY MEBIBYTES REPETITIONS PATTERN...\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  share(argv[1]);
  for (int i = 4; i < argc; i++)
    measure(argv[i], argv[1], (size_t)atol(argv[2]) << 20, atoi(argv[3]));
  int any = 0;
  MPI_Allreduce(&failures, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return any > 0;
}
