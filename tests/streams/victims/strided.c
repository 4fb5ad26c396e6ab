// strided RANK RANKS: writes the pieces of one of several processes, which lie between those of the
// others in one file, while the others write theirs.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 256, ROWS = 1000 };

static void meet(int rank, int ranks) {
  char name[32];
  snprintf(name, sizeof name, "here.%d", rank);
  close(open(name, O_WRONLY | O_CREAT, 0644));
  for (int other = 0; other < ranks; ++other) {
    snprintf(name, sizeof name, "here.%d", other);
    while (access(name, F_OK) != 0) usleep(1000);
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int rank = atoi(argv[1]), ranks = atoi(argv[2]);
  char piece[PIECE];
  memset(piece, 'a' + rank, PIECE);
  const int out = open("out.dat", O_RDWR | O_CREAT, 0644);
  meet(rank, ranks);
  for (int row = 0; row < ROWS; ++row)
    if (pwrite(out, piece, PIECE, (off_t)(row * ranks + rank) * PIECE) != PIECE) return 1;
  return close(out);
}
