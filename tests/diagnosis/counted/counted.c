#define _GNU_SOURCE
#include "counted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SIDE = 512, PATHS = 8 };

void fail(const char* operation, const char* path) {
  fprintf(stderr, "counted: %s %s: %s\n", operation, path, strerror(errno));
  exit(EXIT_FAILURE);
}

void begin(Program* p, const char* name, const char* layer, int argc, char** argv) {
  *p = (Program){.name = name, .layer = layer, .directory = ".", .scale = 1};
  for (int i = 1; i < argc; i++) {
    const bool last = i + 1 == argc;
    if (strcmp(argv[i], "--repaired") == 0)
      p->repaired = true;
    else if (strcmp(argv[i], "--prepare") == 0)
      p->prepare = true;
    else if (strcmp(argv[i], "--dir") == 0 && !last)
      p->directory = argv[++i];
    else if (strcmp(argv[i], "--scale") == 0 && !last)
      p->scale = strtod(argv[++i], NULL);
    else {
      fprintf(stderr, "usage: %s [--repaired] [--prepare] [--dir DIRECTORY] [--scale FACTOR]\n",
              name);
      exit(2);
    }
  }
  p->started = now();
}

int finish(const Program* p, bool verified) {
  const Counts* c = &p->counts;
  printf(
      "{\"program\": \"%s\", \"layer\": \"%s\", \"repaired\": %s, \"verified\": %s, \"seconds\": "
      "%.3f, \"io_seconds\": %.3f, ",
      p->name, p->layer, p->repaired ? "true" : "false", verified ? "true" : "false",
      now() - p->started, p->io_seconds);
  printf(
      "\"opens\": %ld, \"closes\": %ld, \"reads\": %ld, \"writes\": %ld, \"seeks\": %ld, "
      "\"stats\": %ld, \"syncs\": %ld, ",
      c->opens, c->closes, c->reads, c->writes, c->seeks, c->stats, c->syncs);
  printf("\"bytes_read\": %ld, \"bytes_written\": %ld}\n", c->bytes_read, c->bytes_written);
  return verified ? EXIT_SUCCESS : EXIT_FAILURE;
}

const char* in_directory(const Program* p, const char* name) {
  static char paths[PATHS][4096];
  static int next;
  char* path = paths[next++ % PATHS];
  snprintf(path, sizeof paths[0], "%s/%s", p->directory, name);
  return path;
}

long scale(const Program* p, long n) {
  const long m = (long)((double)n * p->scale);
  return m > 0 ? m : 1;
}

void* allocate(size_t bytes) {
  void* memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!memory) fail("aligned_alloc", "a buffer");
  return memset(memory, 1, bytes);
}

double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void compute(const Program* p, long sweeps) {
  static double planes[2][SIDE][SIDE];
  planes[0][SIDE / 2][SIDE / 2] = 1;
  for (long s = 0; s < scale(p, sweeps); s++) {
    double (*from)[SIDE] = planes[s % 2], (*to)[SIDE] = planes[1 - s % 2];
    for (int y = 1; y < SIDE - 1; y++)
      for (int x = 1; x < SIDE - 1; x++)
        to[y][x] = 0.25 * (from[y][x - 1] + from[y][x + 1] + from[y - 1][x] + from[y + 1][x]);
  }
}

void fill(void* buffer, size_t bytes, size_t start) {
  unsigned char* b = buffer;
  for (size_t i = 0; i < bytes; i++) b[i] = (unsigned char)((start + i) * 2654435761u >> 13);
}

size_t scatter(size_t i, size_t n) { return (i * 2654435761u + 12345) & (n - 1); }

void make_file(const Program* p, const char* path, size_t bytes) {
  enum { BLOCK = 1 << 20 };
  struct stat s;
  if (!p->prepare || (stat(path, &s) == 0 && (size_t)s.st_size == bytes)) return;
  const int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (fd < 0) fail("open", path);
  char* block = allocate(BLOCK);
  for (size_t at = 0; at < bytes; at += BLOCK) {
    const size_t n = bytes - at < BLOCK ? bytes - at : BLOCK;
    fill(block, n, at);
    if (write(fd, block, n) != (ssize_t)n) fail("write", path);
  }
  if (fsync(fd) != 0 || close(fd) != 0) fail("fsync or close", path);
  free(block);
}

int open_file(Program* p, const char* path, int flags) {
  const int fd = open(path, flags, 0644);
  if (fd < 0) fail("open", path);
  p->counts.opens++;
  return fd;
}

void close_file(Program* p, int fd) {
  if (close(fd) != 0) fail("close", p->name);
  p->counts.closes++;
}

static void count_write(Program* p, ssize_t moved, size_t bytes) {
  if (moved != (ssize_t)bytes) fail("write", p->name);
  p->counts.writes++;
  p->counts.bytes_written += moved;
}

void write_at(Program* p, int fd, const void* buffer, size_t bytes, off_t offset) {
  count_write(p, pwrite(fd, buffer, bytes, offset), bytes);
}

void write_next(Program* p, int fd, const void* buffer, size_t bytes) {
  count_write(p, write(fd, buffer, bytes), bytes);
}

void read_next(Program* p, int fd, void* buffer, size_t bytes) {
  if (read(fd, buffer, bytes) != (ssize_t)bytes) fail("read", p->name);
  p->counts.reads++;
  p->counts.bytes_read += (long)bytes;
}

off_t seek(Program* p, int fd, off_t offset, int whence) {
  const off_t at = lseek(fd, offset, whence);
  if (at < 0) fail("lseek", p->name);
  p->counts.seeks++;
  return at;
}

off_t size_of(Program* p, const char* path) {
  struct stat s;
  if (stat(path, &s) != 0) fail("stat", path);
  p->counts.stats++;
  return s.st_size;
}

void sync_file(Program* p, int fd) {
  if (fsync(fd) != 0) fail("fsync", p->name);
  p->counts.syncs++;
}

FILE* open_stream(Program* p, const char* path, const char* mode) {
  FILE* stream = fopen(path, mode);
  if (!stream) fail("fopen", path);
  p->counts.opens++;
  return stream;
}

void close_stream(Program* p, FILE* stream) {
  if (fclose(stream) != 0) fail("fclose", p->name);
  p->counts.closes++;
}

void put(Program* p, FILE* stream, const void* buffer, size_t bytes) {
  if (fwrite(buffer, 1, bytes, stream) != bytes) fail("fwrite", p->name);
  p->counts.writes++;
  p->counts.bytes_written += (long)bytes;
}
