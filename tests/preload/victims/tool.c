// Another preloaded tool, structured like Darshan: wraps calls, calls the real functions through
// RTLD_NEXT, and writes its log in a destructor.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static ssize_t (*real_write)(int, const void*, size_t);
static int (*real_close)(int);
static size_t (*real_fwrite)(const void*, size_t, size_t, FILE*);
static long writes, bytes, closes, items;

__attribute__((constructor)) static void begin(void) {
  real_write = (ssize_t (*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  real_close = (int (*)(int))dlsym(RTLD_NEXT, "close");
  real_fwrite = (size_t (*)(const void*, size_t, size_t, FILE*))dlsym(RTLD_NEXT, "fwrite");
}

ssize_t write(int fd, const void* data, size_t size) {
  if (real_write == NULL) begin();
  const ssize_t moved = real_write(fd, data, size);
  ++writes;
  bytes += moved;
  return moved;
}

int close(int fd) {
  if (real_close == NULL) begin();
  ++closes;
  return real_close(fd);
}

size_t fwrite(const void* data, size_t size, size_t count, FILE* stream) {
  if (real_fwrite == NULL) begin();
  items += (long)count;
  return real_fwrite(data, size, count, stream);
}

__attribute__((destructor)) static void end(void) {
  char text[200];
  const int length = snprintf(text, sizeof text, "%ld writes of %ld bytes, %ld closes, %ld items\n",
                              writes, bytes, closes, items);
  const int fd = open(getenv("TOOL_LOG"), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (real_write(fd, text, (size_t)length) != length) abort();
  real_close(fd);
}
