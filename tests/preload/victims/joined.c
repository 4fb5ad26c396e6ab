// Copies a file to standard output in one of several ways, and prints its sizes to standard error.
// Usage: joined FILE WAY
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static char block[3001];

static void check(int condition, const char* text) {
  if (condition) return;
  perror(text);
  abort();
}
#define CHECK(condition) check(condition, #condition)

static void put(const void* data, long size) { CHECK(write(1, data, (size_t)size) == size); }

static void copy_stream(FILE* stream) {
  CHECK(stream != NULL && fseek(stream, 0, SEEK_END) == 0);
  fprintf(stderr, "end %ld\n", ftell(stream));
  rewind(stream);
  for (size_t got; (got = fread(block, 1, sizeof block, stream)) > 0;) put(block, (long)got);
  CHECK(fclose(stream) == 0);
}

static void copy_descriptor(int fd, const char* way, long size) {
  if (strcmp(way, "read") == 0)
    for (long got; (got = read(fd, block, sizeof block)) > 0;) put(block, got);
  if (strcmp(way, "pread") == 0)
    for (long at = 0, got; (got = pread(fd, block, sizeof block, at)) > 0; at += got)
      put(block, got);
  if (strcmp(way, "mmap") == 0) put(mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0), size);
  if (strcmp(way, "sendfile") == 0)
    for (long left = size, got; left > 0; left -= got)
      CHECK((got = sendfile(1, fd, NULL, (size_t)left)) > 0);
  if (strcmp(way, "inherited") == 0) {
    CHECK(dup2(fd, 0) == 0);
    execlp("cat", "cat", NULL);
  }
}

int main(int count, char** words) {
  CHECK(count == 3);
  const char *name = words[1], *way = words[2];
  struct stat named, opened;
  CHECK(stat(name, &named) == 0);
  fprintf(stderr, "stat %ld\n", (long)named.st_size);
  if (strcmp(way, "fopen") == 0) return copy_stream(fopen(name, "r")), 0;
  if (strcmp(way, "freopen") == 0) return copy_stream(freopen(name, "r", stdin)), 0;
  const int fd = open(name, O_RDONLY);
  CHECK(fd >= 0 && fstat(fd, &opened) == 0);
  CHECK(opened.st_ino == named.st_ino && opened.st_size == named.st_size);
  fprintf(stderr, "end %ld\n", (long)lseek(fd, 0, SEEK_END));
  CHECK(lseek(fd, 0, SEEK_SET) == 0);
  copy_descriptor(fd, way, (long)opened.st_size);
  return close(fd);
}
