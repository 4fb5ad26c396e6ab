/* A child that a signal kills, and a parent that waits for it: orphans WAY SIGNAL.
 *
 * The child writes five bytes to "child". WAY is the function that waits, "null" for waitpid
 * without a status, or "many" for 120 children. Prints the number of the (last) child. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(int number) {
  const pid_t child = fork();
  if (child != 0) return child;
  const int file = open("child", O_WRONLY | O_CREAT, 0600);
  if (write(file, "hello", 5) != 5) abort();
  signal(number, SIG_DFL);
  for (;;) raise(number);
}

static int wait_for(pid_t child, const char* way, int number) {
  int status = 0;
  struct rusage usage;
  siginfo_t found;
  if (strcmp(way, "null") == 0) return waitpid(child, NULL, 0) == child;
  if (strcmp(way, "waitid") == 0)
    return waitid(P_PID, (id_t)child, &found, WEXITED) == 0 && found.si_status == number;
  const pid_t ended = strcmp(way, "wait") == 0    ? wait(&status)
                      : strcmp(way, "wait3") == 0 ? wait3(&status, 0, &usage)
                      : strcmp(way, "wait4") == 0 ? wait4(child, &status, 0, &usage)
                                                  : waitpid(child, &status, 0);
  return ended == child && WIFSIGNALED(status) && WTERMSIG(status) == number;
}

int main(int argc, char** argv) {
  const int number = atoi(argv[2]), count = strcmp(argv[1], "many") == 0 ? 120 : 1;
  if (argc != 3) return 2;
  for (int i = 0; i < count; ++i) {
    const pid_t child = start(number);
    if (!wait_for(child, argv[1], number)) return 1;
    if (i == count - 1) printf("%d\n", (int)child);
  }
  return 0;
}
