/// Appends 1,000 lines of 32 bytes to out.dat, a system call each.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
  const int file = open("out.dat", O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return 1;
  char line[40];
  for (int number = 0; number < 1000; ++number) {
    snprintf(line, sizeof line, "%31d\n", number);
    if (write(file, line, 32) != 32) return 2;
  }
  return close(file) != 0;
}
