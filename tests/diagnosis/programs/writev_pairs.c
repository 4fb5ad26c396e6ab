/* Writes each message as a pair of header and body with writev. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "work.h"

enum { PAIRS = 512 };

int main(int argc, char** argv) {
  const long messages = read_size(argc, argv);
  const int pairs = is_repaired(argc, argv) ? PAIRS : 1;
  char header[16] = "message", body[48] = "body";
  struct iovec parts[2 * PAIRS];
  for (int i = 0; i < PAIRS; i++) {
    parts[2 * i] = (struct iovec){header, sizeof header};
    parts[2 * i + 1] = (struct iovec){body, sizeof body};
  }
  const int fd = open("messages.bin", O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (fd < 0) return perror("messages.bin"), 1;
  for (long done = 0; done < messages; done += pairs) {
    const long n = messages - done < pairs ? messages - done : pairs;
    if (writev(fd, parts, 2 * (int)n) < 0) return perror("writev"), 1;
  }
  close(fd);
  compute(1500);
  printf("%ld messages\n", messages);
  return 0;
}
