/* Maps and unmaps the page of each record that it updates. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

enum { PAGE = 4096, PAGES = 1024 };

static long* map(int fd, size_t page, size_t pages) {
  return mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)page * PAGE);
}

int main(int argc, char** argv) {
  const long updates = read_size(argc, argv);
  const int fd = open("records.map", O_CREAT | O_TRUNC | O_RDWR, 0644);
  if (fd < 0 || ftruncate(fd, PAGE * PAGES)) return perror("records.map"), 1;
  long* all = is_repaired(argc, argv) ? map(fd, 0, PAGES) : NULL;
  for (long i = 0; i < updates; i++) {
    const size_t page = pick((size_t)i, PAGES);
    if (all) {
      all[page * (PAGE / sizeof(long))]++;
      continue;
    }
    long* record = map(fd, page, 1);
    ++*record;
    munmap(record, PAGE);
  }
  if (all) munmap(all, PAGE * PAGES);
  close(fd);
  compute(1500);
  printf("%ld updates\n", updates);
  return 0;
}
