/* Two threads look entries of 64 bytes up in an index file, each with a pread. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { ENTRY = 64, BYTES = 16 << 20, THREADS = 2 };

static long lookups;
static int file;
static unsigned char* whole;

static void* look_up(void* argument) {
  const size_t first = (size_t)argument;
  unsigned char entry[ENTRY];
  uint64_t sum = 0;
  for (long i = 0; i < lookups; i++) {
    const size_t at = pick(first + (size_t)i, BYTES / ENTRY) * ENTRY;
    if (whole)
      memcpy(entry, whole + at, ENTRY);
    else if (pread(file, entry, ENTRY, (off_t)at) != ENTRY)
      break;
    sum += entry[0] + entry[ENTRY - 1];
  }
  return (void*)(uintptr_t)sum;
}

int main(int argc, char** argv) {
  pthread_t threads[THREADS];
  uint64_t sum = 0;
  lookups = read_size(argc, argv);
  file = open("index.bin", O_RDONLY);
  if (file < 0) return perror("index.bin"), 1;
  if (is_repaired(argc, argv)) {
    whole = malloc(BYTES);
    for (size_t at = 0; at < BYTES; at += 1 << 20)
      if (pread(file, whole + at, 1 << 20, (off_t)at) != 1 << 20) return perror("index.bin"), 1;
  }
  for (size_t i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, look_up, (void*)(i << 10)) != 0) return 1;
  for (size_t i = 0; i < THREADS; i++) {
    void* result;
    pthread_join(threads[i], &result);
    sum += (uintptr_t)result;
  }
  close(file);
  compute(1500);
  printf("%ld lookups, sum %lu\n", lookups * THREADS, (unsigned long)sum);
  return 0;
}
