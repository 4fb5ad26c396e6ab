// Writes "out" (3 bytes) through POSIX and "stream" (4 bytes) through stdio, then does something
// wrong with the heap. Usage: memory_errors none|write|fwrite|store|leak; ends with status 5.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(int condition) {
  if (!condition) abort();
}

int main(int count, char** words) {
  check(count == 2);
  const char* wrong = words[1];
  char* heap = malloc(1 << 16);  // the name lies behind bytes that are never initialised
  strcpy(heap + 30000, "out");
  const int fd = open(heap + 30000, O_WRONLY | O_CREAT, 0644);
  check(write(fd, "abc", 3) == 3);
  FILE* stream = fopen("stream", "w");
  check(fwrite("text", 1, 4, stream) == 4);
  const size_t all = 100;
  volatile size_t length = all + 1;
  char* block = malloc(all);
  memset(block, 1, all);
  if (strcmp(wrong, "write") == 0) check(write(fd, block, length) == (ssize_t)length);
  if (strcmp(wrong, "fwrite") == 0) check(fwrite(block, 1, length, stream) == length);
  if (strcmp(wrong, "store") == 0) block[length - 1] = 1;
  check(fclose(stream) == 0 && close(fd) == 0);
  free(heap);
  if (strcmp(wrong, "leak") != 0) free(block);
  block = NULL;
  return 5;
}
