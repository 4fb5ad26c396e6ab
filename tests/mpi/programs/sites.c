// MPI calls from known lines, for test_call_sites.py. A line with a mark is the call site.
#include <mpi.h>
#include <stdio.h>

static void save(MPI_File file, int rank, int step) {
  char data[1000] = {0};
  MPI_Offset at = (MPI_Offset)(step * 4 + rank) * (MPI_Offset)sizeof data;
  MPI_File_write_at_all(file, at, data, sizeof data, MPI_CHAR, MPI_STATUS_IGNORE);  // mark: write
}

int main(int count, char** words) {
  (void)count;
  MPI_Init(&count, &words);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char name[4096];
  snprintf(name, sizeof name, "%s/sites.bin", words[1]);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  for (int step = 0; step < 20; ++step) {
    save(file, rank, step);
    MPI_Barrier(MPI_COMM_WORLD);  // mark: barrier
  }
  MPI_File_close(&file);
  MPI_Finalize();
}
