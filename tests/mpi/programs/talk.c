/* Makes a known number of calls of every kind, so that a test knows the log's contents. Runs on 2
 * to 4 ranks: talk DIRECTORY. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static int rank, size;

static void point_to_point(void) {
  int value = rank, next = (rank + 1) % size, previous = (rank + size - 1) % size;
  double block[100] = {0}, incoming[100];
  MPI_Request requests[2];
  if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Status status;
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &status);
  }
  if (rank < 2) {
    MPI_Message message;
    MPI_Status status;
    MPI_Send(&value, 1, MPI_INT, 1 - rank, 6, MPI_COMM_WORLD);
    MPI_Mprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  }
  MPI_Irecv(incoming, 100, MPI_DOUBLE, previous, 9, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(block, 100, MPI_DOUBLE, next, 9, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Sendrecv(block, 10, MPI_DOUBLE, next, 1, incoming, 10, MPI_DOUBLE, previous, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void collectives(MPI_Comm comm) {
  int ranks, counts[16], displacements[16], me;
  double mine[64] = {0}, all[1024] = {0};
  MPI_Request request;
  MPI_Comm_size(comm, &ranks);
  MPI_Comm_rank(comm, &me);
  for (int i = 0; i < ranks; ++i) counts[i] = i + 1, displacements[i] = 32 * i;
  MPI_Barrier(comm);
  MPI_Bcast(mine, 8, MPI_DOUBLE, 0, comm);
  MPI_Allreduce(MPI_IN_PLACE, mine, 3, MPI_DOUBLE, MPI_SUM, comm);
  if (me == 0)
    MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 4, MPI_DOUBLE, 0, comm);
  else
    MPI_Gather(mine, 4, MPI_DOUBLE, NULL, 0, MPI_DATATYPE_NULL, 0, comm);
  if (me == 0)
    MPI_Scatter(all, 5, MPI_DOUBLE, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0, comm);
  else
    MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, mine, 5, MPI_DOUBLE, 0, comm);
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, displacements, MPI_DOUBLE, comm);
  MPI_Alltoall(all, 2, MPI_DOUBLE, all + 512, 2, MPI_DOUBLE, comm);
  for (int i = 0; i < ranks; ++i) counts[i] = me + i, displacements[i] = 32 * i;
  MPI_Alltoallv(all, counts, displacements, MPI_DOUBLE, all + 512, counts, displacements,
                MPI_DOUBLE, comm);
  MPI_Ibarrier(comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void communicators(void) {
  MPI_Comm copy, half, lone;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 1 : MPI_UNDEFINED, 0, &lone);
  MPI_Barrier(copy);
  MPI_Barrier(half);
  MPI_Barrier(half);
  if (rank == 0) MPI_Barrier(lone), MPI_Comm_free(&lone);
  MPI_Barrier(MPI_COMM_SELF);
  MPI_Comm_free(&half);
  /* reuses the freed handle in some MPIs: must be a new communicator in the log */
  MPI_Comm_dup(copy, &half);
  MPI_Barrier(half);
  MPI_Comm_free(&half);
  MPI_Comm_free(&copy);
}

static void one_sided(void) {
  double *memory, value = rank;
  MPI_Win window;
  MPI_Win_allocate(100 * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                   &window);
  MPI_Win_fence(0, window);
  MPI_Put(&value, 1, MPI_DOUBLE, (rank + 1) % size, 0, 1, MPI_DOUBLE, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

/* The last rank comes half a second after the others, which report by a file each. */
static void late_rank(const char* place) {
  char name[4200];
  for (int other = 0; other < size - 1; other++) {
    snprintf(name, sizeof name, "%s/here-%d", place, other);
    if (rank == other) close(open(name, O_CREAT | O_WRONLY, 0666));
    while (rank == size - 1 && access(name, F_OK) != 0) usleep(10000);
  }
  if (rank == size - 1) usleep(500000);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  point_to_point();
  collectives(MPI_COMM_WORLD);
  communicators();
  one_sided();
  late_rank(argv[1]);
  MPI_Finalize();
  return 0;
}
