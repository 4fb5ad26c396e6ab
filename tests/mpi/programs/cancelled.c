/* Requests of MPI-IO that are cancelled or freed. Usage: cancelled DIRECTORY. Each rank prints the
 * results of its calls, and the first bytes that another rank wrote. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { kBytes = 1000 };

int main(int argc, char** argv) {
  int rank, ranks, cancelled = -1, count = -1;
  char name[4096], own[kBytes], other[kBytes];
  MPI_File file;
  MPI_Request request;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  snprintf(name, sizeof name, "%s/bytes", argv[1]);
  memset(own, 'a' + rank, kBytes);
  if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file))
    MPI_Abort(MPI_COMM_WORLD, 1);

  int code = MPI_File_iwrite_at(file, rank * kBytes, own, kBytes, MPI_BYTE, &request);
  int result = MPI_Cancel(&request);
  int wait = MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  MPI_Get_count(&status, MPI_BYTE, &count);
  printf("rank %d: cancel %d%d%d, cancelled %d, count %d\n", rank, code, result, wait, cancelled,
         count);

  MPI_Offset later = (MPI_Offset)ranks * kBytes;
  code = MPI_File_iwrite_at_all(file, later + rank * kBytes, own, kBytes, MPI_BYTE, &request);
  result = MPI_Cancel(&request);
  wait = MPI_Request_free(&request);
  printf("rank %d: free %d%d%d, null %d\n", rank, code, result, wait, request == MPI_REQUEST_NULL);

  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  int next = (rank + 1) % ranks;
  MPI_File_read_at(file, next * kBytes, other, kBytes, MPI_BYTE, MPI_STATUS_IGNORE);
  char first = other[0];
  MPI_File_read_at(file, later + next * kBytes, other, kBytes, MPI_BYTE, MPI_STATUS_IGNORE);
  printf("rank %d: read %c%c\n", rank, first, other[0]);
  MPI_File_close(&file);
  MPI_Finalize();
  return 0;
}
