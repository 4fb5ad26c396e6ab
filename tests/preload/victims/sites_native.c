// A library that Python calls, for test_call_sites.py.
#include <fcntl.h>
#include <unistd.h>

int save(const char* path, int times) {
  const int file = open(path, O_CREAT | O_WRONLY, 0600);
  int right = 1;
  for (int i = 0; i < times; ++i) right &= write(file, "0123456789", 10) == 10;  // mark: native
  close(file);
  return right;
}
