/* A program without MPI that tests by weak references whether an MPI is loaded, like tools and
 * run-time libraries. */
#include <stdio.h>
#include <string.h>

__attribute__((weak)) int MPI_Initialized(int* flag);
__attribute__((weak)) int MPI_Init(int* argc, char*** argv);
__attribute__((weak)) int MPI_Barrier(void* comm);

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "initialized") == 0) {
    int flag = 0;
    if (MPI_Initialized) MPI_Initialized(&flag);
    puts(flag ? "MPI" : "no MPI");
    return 0;
  }
  if (MPI_Init && MPI_Init(&argc, &argv) != 0) puts("MPI_Init failed");
  if (MPI_Barrier && MPI_Barrier(NULL) != 0) puts("MPI_Barrier failed");
  return 0;
}
