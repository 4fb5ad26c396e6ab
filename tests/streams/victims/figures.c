// figures THREADS: threads write small pieces of one file, each its own part; prints the seconds
// from the first call on the file to the last.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 256, PIECES = 100000 };
static int out;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void* write_part(void* number) {
  static const char piece[PIECE] = "piece";
  const off_t begin = (off_t)(long)number * PIECES * PIECE;
  for (off_t i = 0; i < PIECES; ++i)
    if (pwrite(out, piece, PIECE, begin + i * PIECE) != PIECE) exit(1);
  return NULL;
}

int main(int argc, char** argv) {
  const long threads = argc > 1 ? atol(argv[1]) : 1;
  pthread_t all[16];
  const double start = now();
  out = open("out.dat", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  for (long i = 0; i < threads; ++i) pthread_create(&all[i], NULL, write_part, (void*)i);
  for (long i = 0; i < threads; ++i) pthread_join(all[i], NULL);
  close(out);
  printf("%f\n", now() - start);
  return 0;
}
