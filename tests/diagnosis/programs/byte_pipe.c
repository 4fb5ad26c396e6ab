/* A child process sends samples through a pipe, byte by byte; its parent adds them up. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

enum { LARGEST = 1 << 16 };

static void send_samples(int pipe, long samples, size_t block) {
  unsigned char data[LARGEST];
  for (long sent = 0; sent < samples;) {
    const size_t count = (size_t)(samples - sent) < block ? (size_t)(samples - sent) : block;
    for (size_t i = 0; i < count; i++) data[i] = (unsigned char)(sent + (long)i);
    if (write(pipe, data, count) < 0) perror("write");
    sent += (long)count;
  }
}

static long add_samples(int pipe, size_t block) {
  unsigned char data[LARGEST];
  long sum = 0;
  for (ssize_t got; (got = read(pipe, data, block)) > 0;)
    for (ssize_t i = 0; i < got; i++) sum += data[i];
  return sum;
}

int main(int argc, char** argv) {
  const long samples = read_size(argc, argv);
  const size_t block = is_repaired(argc, argv) ? LARGEST : 1;
  int ends[2];
  if (pipe(ends)) return 1;
  if (fork() == 0) {
    close(ends[0]);
    send_samples(ends[1], samples, block);
    _exit(0);
  }
  close(ends[1]);
  const long sum = add_samples(ends[0], block);
  wait(NULL);
  compute(1500);
  printf("%ld samples, sum %ld\n", samples, sum);
  return 0;
}
