/* Step 2: one process, system calls. Usage: 2_posix FILE */
#include <fcntl.h>
#include <unistd.h>

#include "science.h"

/* Calls write() again after short writes. */
static int write_whole(int fd, const void* data, size_t bytes) {
  for (const char* at = data; bytes > 0;) {
    const ssize_t written = write(fd, at, bytes);
    if (written < 0) return -1;
    at += written;
    bytes -= (size_t)written;
  }
  return 0;
}

static int write_data(const char* path) {
  const science header = {.row = YDIM, .col = XDIM, .iter = 1};
  int* array = make_array(0);
  const int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
  int failed = fd < 0 || write_whole(fd, &header, sizeof header) != 0 ||
               write_whole(fd, array, sizeof(int) * XDIM * YDIM) != 0;
  if (fd >= 0 && close(fd) != 0) failed = 1; /* some file systems report errors only here */
  free(array);
  return failed;
}

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "ladder.dat";
  if (write_data(path) == 0) return 0;
  perror(path);
  return 1;
}
