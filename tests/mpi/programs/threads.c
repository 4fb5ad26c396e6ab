/* Threads communicate at the same time, each on its own communicator. Prints MPI_THREAD_MULTIPLE if
 * the MPI supports it. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 3
#define CALLS 100

static void* communicate(void* comm) {
  double value = 1, sum;
  for (int i = 0; i < CALLS; ++i)
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, *(MPI_Comm*)comm);
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  pthread_t threads[THREADS];
  MPI_Comm comms[THREADS];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided == MPI_THREAD_MULTIPLE) {
    puts("multiple");
    for (int i = 0; i < THREADS; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, communicate, &comms[i]);
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; ++i) MPI_Comm_free(&comms[i]);
  }
  MPI_Finalize();
  return 0;
}
