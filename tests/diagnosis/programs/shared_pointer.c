/* Ranks append their events to one log through the shared file pointer. */
#include <mpi.h>
#include <stdio.h>

#include "work.h"

enum { EVENT = 64 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int events = (int)read_size(argc, argv);
  const int each = is_repaired(argc, argv) ? events : 1;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* mine = malloc((size_t)events * EVENT);
  memset(mine, 'e', (size_t)events * EVENT);
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "events.log", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                &file);
  for (int done = 0; done < events; done += each)
    MPI_File_write_shared(file, mine + (size_t)done * EVENT, each * EVENT, MPI_BYTE,
                          MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  compute(1500);
  if (rank == 0) printf("%d events of each rank\n", events);
  return MPI_Finalize();
}
