/* Common parts of the bad programs: the command line, a computation, and I/O functions that count
 * their calls and end the program on an error. A program makes the same results with and without
 * --repaired; a tracer must find the counts that it prints. */
#ifndef COUNTED_H
#define COUNTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* The program's calls on its files, in its own layer (system calls made by stdio do not count). */
typedef struct {
  long opens, closes, reads, writes, seeks, stats, syncs, bytes_read, bytes_written;
} Counts;

typedef struct {
  const char *name, *layer, *directory; /* layer: posix, stdio or mpiio */
  bool repaired, prepare;               /* prepare: only create the input files, untraced */
  double scale, started, io_seconds;
  Counts counts;
} Program;

/* Reads [--repaired] [--prepare] [--dir DIRECTORY] [--scale FACTOR]. */
void begin(Program* p, const char* name, const char* layer, int argc, char** argv);
/* Prints the counts as one line of JSON; returns the exit status, 1 unless `verified`. */
int finish(const Program* p, bool verified);
_Noreturn void fail(const char* operation, const char* path);

/* Returns DIRECTORY/name; valid until the eighth call after this one. */
const char* in_directory(const Program* p, const char* name);
/* Returns n times the scale, at least 1. */
long scale(const Program* p, long n);
void* allocate(size_t bytes);
double now(void);
/* Relaxes a plane of 512 x 512 doubles `sweeps` times the scale; about 0.2 ms each. */
void compute(const Program* p, long sweeps);
/* Fills a buffer with bytes that depend on their position; the first is that of `start`. */
void fill(void* buffer, size_t bytes, size_t start);
/* A cheap permutation of 0 .. n-1 for n a power of two. */
size_t scatter(size_t i, size_t n);
/* With --prepare: writes a file of such bytes unless one of this size exists. */
void make_file(const Program* p, const char* path, size_t bytes);

int open_file(Program* p, const char* path, int flags);
void close_file(Program* p, int fd);
void write_at(Program* p, int fd, const void* buffer, size_t bytes, off_t offset);
void write_next(Program* p, int fd, const void* buffer, size_t bytes);
void read_next(Program* p, int fd, void* buffer, size_t bytes);
off_t seek(Program* p, int fd, off_t offset, int whence);
off_t size_of(Program* p, const char* path);
void sync_file(Program* p, int fd);

FILE* open_stream(Program* p, const char* path, const char* mode);
void close_stream(Program* p, FILE* stream);
void put(Program* p, FILE* stream, const void* buffer, size_t bytes);

#endif
