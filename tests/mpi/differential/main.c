/* Compares random cases of MPI-IO with a model of the file, byte by byte.
 *
 *   differential DIRECTORY [--seed S] [--cases N] [--without FEATURE]... [--seconds PER_CASE]
 * [--verbose]
 *
 * Case i has seed S + i; a failing one is repeated by --seed THAT --cases 1. Ends with status 1 if
 * one failed. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case.h"

static Case now;

static const struct {
  const char* name;
  int* enabled;
} kFeatures[] = {
    {"eof", &now.features.eof},
    {"shared", &now.features.shared},
    {"external32", &now.features.external32},
    {"huge", &now.features.huge},
    {"split", &now.features.split},
    {"nonblocking", &now.features.nonblocking},
    {"large", &now.features.large},
    {"resize", &now.features.resize},
    {"hints", &now.features.hints},
    {"status", &now.features.status},
    {"atomic", &now.features.atomic},
    {"derived_etype", &now.features.derived_etype},
    {"holes", &now.features.holes},
    {"cyclic_blocks", &now.features.cyclic_blocks},
    {"series", &now.features.series},
    {"order", &now.features.order},
    {"modes", &now.features.modes},
    {"sequential", &now.features.sequential},
};
enum { kFeatureCount = sizeof kFeatures / sizeof *kFeatures };

static void on_alarm(int signal) {
  (void)signal;
  char text[200];
  int length = snprintf(text, sizeof text, "case %llu step %u rank %d: hangs in %s\n",
                        (unsigned long long)now.seed, now.step, now.rank, doing);
  if (write(2, text, (size_t)length) < 0) _exit(4);
  _exit(3);
}

static void leave_out(const char* name) {
  for (int i = 0; i < kFeatureCount; i++) {
    if (strcmp(kFeatures[i].name, name) != 0) continue;
    *kFeatures[i].enabled = 0;
    return;
  }
  fprintf(stderr, "no feature '%s'; features are", name);
  for (int i = 0; i < kFeatureCount; i++) fprintf(stderr, " %s", kFeatures[i].name);
  fprintf(stderr, "\n");
  exit(2);
}

int main(int argc, char** argv) {
  unsigned long long seed = 1;
  unsigned seconds = 60;
  long cases = 20, failed = 0;
  MPI_Init(&argc, &argv);
  if (argc < 2) return 2;
  now.directory = argv[1];
  for (int i = 0; i < kFeatureCount; i++) *kFeatures[i].enabled = 1;
  for (int i = 2; i < argc; i++) {
    if (!strcmp(argv[i], "--verbose")) now.verbose = 1;
    if (i + 1 == argc) break;
    if (!strcmp(argv[i], "--seed")) seed = strtoull(argv[i + 1], NULL, 10);
    if (!strcmp(argv[i], "--cases")) cases = atol(argv[i + 1]);
    if (!strcmp(argv[i], "--seconds")) seconds = (unsigned)atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--without")) leave_out(argv[i + 1]);
  }
  reserve(&now.model, 1 << 16);
  signal(SIGALRM, on_alarm);
  int world;
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  for (long i = 0; i < cases; i++) {
    now.seed = seed + (uint64_t)i;
    if (now.verbose && world == 0) fprintf(stderr, "case %llu\n", (unsigned long long)now.seed);
    alarm(seconds);
    int mine = run_case(&now) > 0, any = 0;
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    failed += any;
  }
  alarm(0);
  if (world == 0) printf("seed %llu: %ld cases, %ld failed\n", seed, cases, failed);
  free_model(&now.model);
  MPI_Finalize();
  return failed > 0;
}
