/* Keeps counters in a mapped file and flushes the mapping after each update. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

enum { PAGE = 4096, PAGES = 256 };

int main(int argc, char** argv) {
  const long updates = read_size(argc, argv);
  const int fd = open("counters.map", O_CREAT | O_TRUNC | O_RDWR, 0644);
  if (fd < 0 || ftruncate(fd, PAGE * PAGES)) return perror("counters.map"), 1;
  long* counters = mmap(NULL, PAGE * PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  for (long i = 0; i < updates; i++) {
    long* counter = counters + pick((size_t)i, PAGES) * (PAGE / sizeof(long));
    ++*counter;
    if (!is_repaired(argc, argv)) msync(counter, PAGE, MS_SYNC);
  }
  msync(counters, PAGE * PAGES, MS_SYNC);
  munmap(counters, PAGE * PAGES);
  close(fd);
  compute(1500);
  printf("%ld updates\n", updates);
  return 0;
}
