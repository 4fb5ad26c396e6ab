/* Large messages are in flight during a collective call: one rank starts to send and receive them
 * and enters the call, the other enters it only after both have arrived. Argument 2: the call
 * (blocking, split, started, open, close, sync). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE 10000000
#define BLOCK 1000

static MPI_File file;
static char name[4096], block[BLOCK];
static const char* how;

static void open_file(void) {
  if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) !=
      MPI_SUCCESS)
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void write_together(void) {
  MPI_Request request;
  if (strcmp(how, "split") == 0) {
    MPI_File_write_all_begin(file, block, BLOCK, MPI_BYTE);
    MPI_File_write_all_end(file, block, MPI_STATUS_IGNORE);
  } else if (strcmp(how, "started") == 0) {
    MPI_File_iwrite_all(file, block, BLOCK, MPI_BYTE, &request);
    MPI_File_sync(file); /* waits for the started write */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_File_write_all(file, block, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
  }
}

static void act(void) {
  if (strcmp(how, "open") == 0)
    open_file();
  else if (strcmp(how, "close") == 0)
    MPI_File_close(&file);
  else if (strcmp(how, "sync") == 0)
    MPI_File_sync(file);
  else
    write_together();
}

/* An even rank and the next one exchange data; the even one starts the transfers and lets the MPI
 * complete them. */
static void exchange_and_act(int rank, int size) {
  const int partner = rank % 2 == 0 ? rank + 1 : rank - 1;
  char *out = malloc(LARGE), *in = malloc(LARGE);
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  memset(out, rank, LARGE);
  if (partner > rank && partner < size) {
    MPI_Irecv(in, LARGE, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, LARGE, MPI_BYTE, partner, 0, MPI_COMM_WORLD, &requests[1]);
  } else if (partner < rank) {
    MPI_Recv(in, LARGE, MPI_BYTE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, LARGE, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
  }
  act();
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  if (partner < size && in[LARGE - 1] != partner) MPI_Abort(MPI_COMM_WORLD, 1);
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  snprintf(name, sizeof name, "%s/out", argv[1]);
  how = argv[2];
  memset(block, 'a' + rank, BLOCK);
  if (strcmp(how, "open") != 0) {
    open_file();
    MPI_File_set_view(file, (MPI_Offset)rank * BLOCK, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  }
  exchange_and_act(rank, size);
  if (strcmp(how, "close") != 0) MPI_File_close(&file);
  if (rank == 0) puts("done");
  MPI_Finalize();
  return 0;
}
