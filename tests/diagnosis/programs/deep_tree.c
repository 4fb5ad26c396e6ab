/* Stores each tile of a map in a file of its own, twenty tiles to a directory. */
#include <stdio.h>
#include <sys/stat.h>

#include "work.h"

enum { TILE = 1500, ROW = 20 };

static int store_tile(const char* path, const char* mode, const char* tile) {
  FILE* out = fopen(path, mode);
  if (!out) return -1;
  fwrite(tile, TILE, 1, out);
  return fclose(out);
}

static void store_in_files(long tiles, const char* tile) {
  char path[64];
  for (long i = 0; i < tiles; i++) {
    if (i % ROW == 0) {
      snprintf(path, sizeof path, "row%ld", i / ROW);
      mkdir(path, 0755);
    }
    snprintf(path, sizeof path, "row%ld/tile%ld", i / ROW, i % ROW);
    if (store_tile(path, "w", tile)) perror(path);
  }
}

static void store_in_one_file(long tiles, const char* tile) {
  FILE* out = fopen("tiles.bin", "w");
  for (long i = 0; i < tiles; i++) fwrite(tile, TILE, 1, out);
  fclose(out);
}

int main(int argc, char** argv) {
  const long tiles = read_size(argc, argv);
  char tile[TILE];
  memset(tile, 't', sizeof tile);
  if (is_repaired(argc, argv))
    store_in_one_file(tiles, tile);
  else
    store_in_files(tiles, tile);
  compute(1500);
  printf("%ld tiles\n", tiles);
  return 0;
}
