// Writes "ends" by write and by stdio, then ends as told. Usage: ends HOW; prints its pid first.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is(const char* a, const char* b) { return strcmp(a, b) == 0; }

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  dprintf(1, "%d\n", getpid());
  const int fd = open("ends", O_WRONLY | O_CREAT, 0644);
  for (int i = 0; i < 1000; ++i)
    if (write(fd, "0123456789", 10) != 10) return 3;
  if (is(argv[1], "return")) return 7;
  if (is(argv[1], "exit")) exit(8);
  if (is(argv[1], "_exit")) _exit(9);
  if (is(argv[1], "_Exit")) _Exit(10);
  if (is(argv[1], "quick_exit")) quick_exit(11);
  if (is(argv[1], "abort")) abort();
  if (is(argv[1], "kill")) kill(getpid(), SIGKILL);
  if (is(argv[1], "segv")) *(volatile int*)(long)(argc - 2) = 0;
  if (is(argv[1], "exit_group")) syscall(SYS_exit_group, 12);
  if (is(argv[1], "exec")) execlp("true", "true", (char*)NULL);
  if (is(argv[1], "failed exec")) execl("/no/such/program", "x", (char*)NULL);
  if (write(fd, "more", 4) != 4) return 4;
  return 13;
}
