// Measures the nanoseconds of one I/O call, by kind; overhead.py runs it. Usage: overhead DIRECTORY
// CALLS
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kSize = 512, kSpan = 1 << 20, kBatches = 9 };

static char path[4096];
static char block[kSize];
static int fd;
static FILE* stream;

static void begin_write(void) { fd = open(path, O_RDWR | O_CREAT, 0644); }
static void begin_read(void) { fd = open(path, O_RDONLY); }
static void end_descriptor(void) { close(fd); }
static void begin_fwrite(void) { stream = fopen(path, "r+"); }
static void begin_fread(void) { stream = fopen(path, "r"); }
static void end_stream(void) { fclose(stream); }
static void begin_nothing(void) {}

// The file stays within kSpan bytes, so that no call needs new pages.
static void call_write(long i) {
  if (i % (kSpan / kSize) == 0) lseek(fd, 0, SEEK_SET);
  if (write(fd, block, kSize) != kSize) abort();
}
static void call_pwrite(long i) {
  if (pwrite(fd, block, kSize, i * kSize % kSpan) != kSize) abort();
}
static void call_read(long i) {
  if (i % (kSpan / kSize) == 0) lseek(fd, 0, SEEK_SET);
  if (read(fd, block, kSize) != kSize) abort();
}
static void call_pread(long i) {
  if (pread(fd, block, kSize, i * kSize % kSpan) != kSize) abort();
}
static void call_fwrite(long i) {
  if (i % (kSpan / kSize) == 0) rewind(stream);
  if (fwrite(block, 1, kSize, stream) != kSize) abort();
}
static void call_fread(long i) {
  if (i % (kSpan / kSize) == 0) rewind(stream);
  if (fread(block, 1, kSize, stream) != kSize) abort();
}
static void call_fputs(long i) {
  if (i % (kSpan / 16) == 0) rewind(stream);
  fputs("1.2345678 2.345\n", stream);
}
static void call_fprintf(long i) {
  if (i % (kSpan / 32) == 0) rewind(stream);
  fprintf(stream, "%ld %g\n", i & 0xffff, 1.25);
}
static void call_fputc(long i) {
  if (i % kSpan == 0) rewind(stream);
  fputc('x', stream);
}
static void call_fgetc(long i) {
  if (i % kSpan == 0) rewind(stream);
  if (fgetc(stream) == EOF) abort();
}
static void call_stat(long i) {
  struct stat status;
  (void)i;
  if (stat(path, &status) != 0) abort();
}
static void call_open_close(long i) {
  (void)i;
  const int opened = open(path, O_RDONLY);
  if (opened < 0) abort();
  close(opened);
}

static const struct {
  const char* name;
  void (*begin)(void), (*call)(long), (*end)(void);
} kinds[] = {
    {"write", begin_write, call_write, end_descriptor},
    {"pwrite", begin_write, call_pwrite, end_descriptor},
    {"read", begin_read, call_read, end_descriptor},
    {"pread", begin_read, call_pread, end_descriptor},
    {"open+close", begin_nothing, call_open_close, begin_nothing},
    {"stat", begin_nothing, call_stat, begin_nothing},
    {"fwrite", begin_fwrite, call_fwrite, end_stream},
    {"fread", begin_fread, call_fread, end_stream},
    {"fputs", begin_fwrite, call_fputs, end_stream},
    {"fprintf", begin_fwrite, call_fprintf, end_stream},
    {"fputc", begin_fwrite, call_fputc, end_stream},
    {"fgetc", begin_fread, call_fgetc, end_stream},
};

// Processor time: on tmpfs no call waits, and other work of the machine does not count.
static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static double median_of_batches(void (*call)(long), long calls) {
  double batches[kBatches];
  for (int batch = 0; batch < kBatches; ++batch) {
    const double start = now_ns();
    for (long i = 0; i < calls; ++i) call(i);
    batches[batch] = (now_ns() - start) / (double)calls;
  }
  qsort(batches, kBatches, sizeof batches[0], by_value);
  return batches[kBatches / 2];
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: overhead DIRECTORY CALLS\n"), 2;
  snprintf(path, sizeof path, "%s/overhead.dat", argv[1]);
  memset(block, 'x', sizeof block);
  begin_write();
  for (long i = 0; i < kSpan / kSize; ++i) call_write(i);
  end_descriptor();
  for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; ++kind) {
    kinds[kind].begin();
    printf("%s %.2f\n", kinds[kind].name, median_of_batches(kinds[kind].call, atol(argv[2])));
    kinds[kind].end();
  }
  return unlink(path);
}
