// ranks WHAT: every rank writes a file and says so; then the job ends well, or WHAT happens to rank
// 1 (fail, kill), all return 5 (status), or all wait.
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
  const char* what = argc > 1 ? argv[1] : "";
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  write_file(rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1 && strcmp(what, "fail") == 0) exit(9);
  if (rank == 1 && strcmp(what, "kill") == 0) raise(SIGKILL);
  if (rank == 0) {
    printf("%d ranks wrote\n", size);
    fflush(stdout);
  }
  const int with_status = strcmp(what, "status") == 0;
  if (strcmp(what, "") != 0 && !with_status) sleep(60);
  MPI_Finalize();
  return with_status ? 5 : 0;
}
