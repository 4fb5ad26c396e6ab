/* Every sample of a data set in a file of its own: 12,000 files in one directory. Repaired: one
 * file. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "counted.h"

enum { STEPS = 12, SAMPLES = 1000, SAMPLE = 2000 };

static void write_step(Program* p, long first, long n, char* samples) {
  char name[64];
  for (long i = 0; i < n; i++) {
    snprintf(name, sizeof name, "small_files/%06ld.sample", first + i);
    const int fd = open_file(p, in_directory(p, name), O_CREAT | O_TRUNC | O_WRONLY);
    write_next(p, fd, samples + i * SAMPLE, SAMPLE);
    close_file(p, fd);
  }
}

/* Renames the directory of an earlier run. Deleting its files would slow the run down: for a minute
 * ext4 skips deleted inodes one by one at every new file. */
static int rename_old(const Program* p) {
  char name[64];
  snprintf(name, sizeof name, "small_files.%ld", (long)getpid());
  rename(in_directory(p, "small_files"), in_directory(p, name));
  return 0;
}

int main(int argc, char** argv) {
  Program p;
  begin(&p, "small_files", "posix", argc, argv);
  const long n = scale(&p, SAMPLES);
  if (p.prepare) return rename_old(&p);
  mkdir(in_directory(&p, "small_files"), 0755);
  char* samples = allocate((size_t)n * SAMPLE);
  const int all = p.repaired ? open_file(&p, in_directory(&p, "small_files/all.samples"),
                                         O_CREAT | O_TRUNC | O_WRONLY)
                             : -1;
  for (int step = 0; step < STEPS; step++) {
    compute(&p, 600);
    fill(samples, (size_t)n * SAMPLE, (size_t)(step * n) * SAMPLE);
    const double start = now();
    if (p.repaired)
      write_next(&p, all, samples, (size_t)n * SAMPLE);
    else
      write_step(&p, step * n, n, samples);
    p.io_seconds += now() - start;
  }
  if (all >= 0) close_file(&p, all);
  return finish(&p, p.counts.bytes_written == STEPS * n * SAMPLE);
}
