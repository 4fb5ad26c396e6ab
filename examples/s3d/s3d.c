/* The command line of the S3D-like checkpoint kernel. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "s3d.h"

typedef struct {
  Box grid;
  int steps;
  double compute;
  enum Mode mode;
  const char *directory, *restart;
} Options;

static const char kUsage[] =
    "usage: mpiexec -n RANKS s3d [options]\n"
    "  --size NXxNYxNZ   cells of the whole grid (default 64x64x64: 33.6 MB in a checkpoint)\n"
    "  --steps N         time steps, each followed by a checkpoint (default 1; 0 with --restart)\n"
    "  --compute SECONDS time spent computing in each step (default 0: one sweep)\n"
    "  --write HOW       one          rank 0 gathers all and writes\n"
    "                    files        every rank writes a file of its own\n"
    "                    independent  one file, every row of cells a write of its own\n"
    "                    sieving      one file, independent writes with data sieving\n"
    "                    collective   one file, collective writes (default)\n"
    "                    hdf5         one HDF5 file, collective writes (of s3d_hdf5)\n"
    "  --dir DIRECTORY   where the checkpoints go (default .): DIRECTORY/s3d-STEP.ckpt, or "
    "DIRECTORY/step-STEP.h5\n"
    "  --restart FILE    read this checkpoint, on any number of ranks, verify it, and go on from "
    "it\n";

static void usage_error(const char* option, const char* value, const char* expected) {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) fprintf(stderr, "s3d: %s %s: %s\n%s", option, value, expected, kUsage);
  MPI_Finalize();
  exit(2);
}

static Box parse_size(const char* text) {
  Box grid = {.start = {0, 0, 0}};
  int used = 0;
  if (sscanf(text, "%dx%dx%d%n", &grid.count[X], &grid.count[Y], &grid.count[Z], &used) != 3 ||
      text[used])
    usage_error("--size", text, "expected three numbers such as 64x64x64");
  for (int d = 0; d < DIMS; d++)
    if (grid.count[d] < 1 || grid.count[d] > 100000)
      usage_error("--size", text, "expected sides of 1 to 100000 cells");
  if (cells(&grid) > INT32_MAX / COMPONENTS)
    usage_error("--size", text, "expected at most 134 million cells");
  return grid;
}

static enum Mode parse_mode(const char* text) {
  for (int mode = 0; mode < MODES; mode++)
    if (strcmp(text, mode_names[mode]) == 0) return (enum Mode)mode;
  usage_error("--write", text, "expected one, files, independent, sieving, collective or hdf5");
  return MODES;
}

static double parse_number(const char* option, const char* text) {
  char* end;
  const double number = strtod(text, &end);
  if (end == text || *end || !(number >= 0 && number <= 1e6))
    usage_error(option, text, "expected a number from 0 to 1000000");
  return number;
}

static Options parse(int argc, char** argv) {
  static const struct option kOptions[] = {
      {"size", 1, 0, 's'}, {"steps", 1, 0, 'n'},   {"compute", 1, 0, 'c'}, {"write", 1, 0, 'w'},
      {"dir", 1, 0, 'd'},  {"restart", 1, 0, 'r'}, {"help", 0, 0, 'h'},    {0}};
  Options o = {
      .grid = {{0, 0, 0}, {64, 64, 64}}, .steps = -1, .mode = COLLECTIVE, .directory = "."};
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, "", kOptions, NULL)) != -1;) {
    if (c == 's')
      o.grid = parse_size(optarg);
    else if (c == 'n')
      o.steps = (int)parse_number("--steps", optarg);
    else if (c == 'c')
      o.compute = parse_number("--compute", optarg);
    else if (c == 'w')
      o.mode = parse_mode(optarg);
    else if (c == 'd')
      o.directory = optarg;
    else if (c == 'r')
      o.restart = optarg;
    else if (c == 'h') {
      fputs(kUsage, stdout);
      MPI_Finalize();
      exit(0);
    } else
      usage_error("option", argv[optind - 1], "not known, or without its value");
  }
  if (optind < argc) usage_error("argument", argv[optind], "not expected");
  if (o.steps < 0) o.steps = o.restart ? 0 : 1;
  return o;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const Options o = parse(argc, argv);
  Kernel k = {.step = 0};
  if (o.restart) {
    restart_from(&k, o.restart);
    verify(&k, "restart");
  } else {
    init_kernel(&k, o.grid);
    set_to_exact(&k);
  }
  for (int step = 0; step < o.steps; step++) {
    compute(&k, o.compute);
    write_checkpoint(&k, o.mode, o.directory);
  }
  verify(&k, "end");
  MPI_Finalize();
  return 0;
}
