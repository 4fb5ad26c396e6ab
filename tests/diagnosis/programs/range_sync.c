/* A downloader that starts and awaits write-back of every received packet. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "work.h"

enum { PACKET = 4096, GROUP = 4096 };

int main(int argc, char** argv) {
  const long packets = read_size(argc, argv);
  const long each = is_repaired(argc, argv) ? GROUP : 1;
  char packet[PACKET];
  memset(packet, 'p', sizeof packet);
  const int fd = open("download.part", O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (fd < 0) return perror("download.part"), 1;
  for (long i = 0; i < packets; i++) {
    if (write(fd, packet, PACKET) < 0) return perror("write"), 1;
    if ((i + 1) % each == 0)
      sync_file_range(
          fd, (i + 1 - each) * PACKET, each * PACKET,
          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  }
  close(fd);
  compute(1500);
  printf("%ld packets\n", packets);
  return 0;
}
