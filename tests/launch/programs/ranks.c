// ranks [FATE]: every rank writes a file, and rank 0 prints a line. Then the job succeeds, or rank
// 1 fails (fail) or is killed (kill), all ranks return 5 (status), or all ranks wait.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_file(int rank) {
  char name[32];
  snprintf(name, sizeof name, "out.%d", rank);
  FILE* file = fopen(name, "w");
  if (file == NULL) exit(1);
  for (int i = 0; i < 1000; i++) fprintf(file, "%d\n", i);
  fclose(file);
}

int main(int argc, char** argv) {
  const char* fate = argc > 1 ? argv[1] : "";
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  write_file(rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1 && strcmp(fate, "fail") == 0) exit(9);
  if (rank == 1 && strcmp(fate, "kill") == 0) raise(SIGKILL);
  if (rank == 0) {
    printf("%d ranks wrote\n", size);
    fflush(stdout);
  }
  const int with_status = strcmp(fate, "status") == 0;
  if (strcmp(fate, "") != 0 && !with_status) sleep(60);
  MPI_Finalize();
  return with_status ? 5 : 0;
}
