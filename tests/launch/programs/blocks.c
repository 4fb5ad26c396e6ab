// Blocks without end: "fifo PATH" in open(), "lock PATH" in flock(), whose lock its child holds.
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int main(int count, char** words) {
  if (count < 3) return 2;
  if (strcmp(words[1], "fifo") == 0) return open(words[2], O_RDONLY) < 0;
  int ready[2];
  char byte = 0;
  if (pipe(ready) != 0) return 3;
  if (fork() == 0) {
    flock(open(words[2], O_RDWR | O_CREAT, 0600), LOCK_EX);
    if (write(ready[1], &byte, 1) != 1) return 3;
    for (;;) pause();
  }
  if (read(ready[0], &byte, 1) != 1) return 3;
  return flock(open(words[2], O_RDWR), LOCK_EX);
}
