// Rank 1 reads from an empty pipe, and rank 2 sleeps; the others write collectively.
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank;
  char bytes[100] = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "out.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  for (int i = 0; i < 3; ++i)
    MPI_File_write_at_all(file, rank * 100, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE);
  if (rank == 1) {
    mkfifo("input", 0600);
    int pipe = open("input", O_RDWR);
    if (read(pipe, bytes, 1) != 1) return 1;
  }
  if (rank == 2)
    for (;;) pause();
  MPI_File_write_at_all(file, 400 + rank * 100, bytes, 100, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
