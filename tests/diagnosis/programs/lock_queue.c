/* Two workers that hold the lock of a shared ledger while they compute. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

enum { WORKERS = 2, ENTRY = 64, SWEEPS = 10 };

static void set_lock(int fd, short type) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
  if (fcntl(fd, F_SETLKW, &lock)) perror("fcntl");
}

static void work(long entries, int repaired) {
  char entry[ENTRY];
  memset(entry, 'e', sizeof entry);
  const int fd = open("ledger.dat", O_CREAT | O_WRONLY | O_APPEND, 0644);
  for (long i = 0; i < entries; i++) {
    if (repaired) compute(SWEEPS);
    set_lock(fd, F_WRLCK);
    if (!repaired) compute(SWEEPS);
    if (write(fd, entry, ENTRY) < 0) perror("write");
    set_lock(fd, F_UNLCK);
  }
  close(fd);
}

int main(int argc, char** argv) {
  const long entries = read_size(argc, argv);
  for (int worker = 0; worker < WORKERS; worker++)
    if (fork() == 0) {
      work(entries, is_repaired(argc, argv));
      _exit(0);
    }
  while (wait(NULL) > 0);
  printf("%ld entries of %d workers\n", entries, WORKERS);
  return 0;
}
