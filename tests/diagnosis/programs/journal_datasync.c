/* A message queue that calls fdatasync after each message. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { MESSAGE = 8192, EVERY = 1000 };

int main(int argc, char** argv) {
  const long messages = read_size(argc, argv);
  const long every = is_repaired(argc, argv) ? EVERY : 1;
  char message[MESSAGE];
  memset(message, 'm', sizeof message);
  const int fd = open("queue.log", O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0644);
  if (fd < 0) return perror("queue.log"), 1;
  for (long i = 1; i <= messages; i++) {
    if (write(fd, message, MESSAGE) < 0) return perror("write"), 1;
    if (i % every == 0 || i == messages) fdatasync(fd);
  }
  close(fd);
  compute(1500);
  printf("%ld messages\n", messages);
  return 0;
}
