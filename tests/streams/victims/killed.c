// killed HOW: writes records of 16 bytes to out.dat until it is killed, and keeps the number of
// completed writes in the file `returned`. HOW: sequential, or scattered over the file in an order
// that creates and joins many runs of bytes.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kRecord = 16, kWindow = 256 };

/// Permutes the records of each window.
static uint64_t permute(uint64_t i) { return i / kWindow * kWindow + i % kWindow * 37 % kWindow; }

int main(int argc, char** argv) {
  const int in_order = argc > 1 && strcmp(argv[1], "sequential") == 0;
  const int count = open("returned", O_RDWR | O_CREAT, 0644);
  if (ftruncate(count, sizeof(uint64_t)) != 0) return 1;
  volatile uint64_t* returned =
      mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, count, 0);
  const int out = open("out.dat", O_RDWR | O_CREAT | O_TRUNC, 0644);
  for (uint64_t i = 0;; ++i) {
    char record[kRecord + 1];
    snprintf(record, sizeof record, "%15llu\n", (unsigned long long)i);
    const long done = in_order ? write(out, record, kRecord)
                               : pwrite(out, record, kRecord, (off_t)(permute(i) * kRecord));
    if (done != kRecord) return 2;
    *returned = i + 1;
  }
}
