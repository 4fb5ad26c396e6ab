/* Hands each measured value to POSIX AIO and waits for it. */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { VALUE = 64 };

int main(int argc, char** argv) {
  const long values = read_size(argc, argv);
  const long each = is_repaired(argc, argv) ? values : 1;
  char* memory = malloc((size_t)values * VALUE);
  memset(memory, 'v', (size_t)values * VALUE);
  const int fd = open("values.bin", O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (fd < 0) return perror("values.bin"), 1;
  for (long done = 0; done < values; done += each) {
    struct aiocb request = {.aio_fildes = fd,
                            .aio_buf = memory + done * VALUE,
                            .aio_nbytes = (size_t)each * VALUE,
                            .aio_offset = done * VALUE};
    const struct aiocb* waited[] = {&request};
    if (aio_write(&request)) return perror("aio_write"), 1;
    while (aio_error(&request) == EINPROGRESS) aio_suspend(waited, 1, NULL);
    aio_return(&request);
  }
  close(fd);
  compute(1500);
  printf("%ld values\n", values);
  return 0;
}
