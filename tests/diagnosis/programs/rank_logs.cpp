// Ranks that log each message to a file of their own with a flush.
#include <mpi.h>

#include <fstream>
#include <iostream>
#include <string>

#include "work.h"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long messages = read_size(argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::ofstream log("rank" + std::to_string(rank) + ".log");
  for (long i = 0; i < messages; i++) {
    log << "message " << i << " received\n";
    if (!is_repaired(argc, argv)) log.flush();
  }
  log.close();
  compute(1500);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) std::cout << messages << " messages of each rank\n";
  MPI_Finalize();
}
