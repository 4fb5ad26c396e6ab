/* An S3D-like checkpoint kernel: a 3-D block decomposition and four arrays, pressure, temperature,
 * velocity with 3 and species with 11 components. kernel.c computes, checkpoint.c and hdf5.c write
 * and read, s3d.c is the command line. See README.md. */
#ifndef S3D_H
#define S3D_H

#include <mpi.h>
#include <stdint.h>

enum { Z, Y, X, DIMS };
enum { VARIABLES = 4, COMPONENTS = 16 }; /* arrays, and the components of all of them together */
enum Mode { ONE, FILES, INDEPENDENT, SIEVING, COLLECTIVE, HDF5, MODES };

/* Cells of the grid: along each side the first and how many. */
typedef struct {
  int start[DIMS], count[DIMS];
} Box;

typedef struct {
  MPI_Comm comm;
  int rank, ranks;
  Box grid, box;              /* all cells, and this rank's */
  double* wave[DIMS];         /* one period of a sine along each side of the grid */
  double* field;              /* [COMPONENTS][box], without ghost cells, as in a checkpoint */
  double* work;               /* one component of the box with one layer of ghost cells */
  MPI_Datatype face[DIMS][4]; /* of work: send low, receive high, send high, receive low */
  int64_t step;
} Kernel;

/* Prints "s3d: WHAT NAME: WHY" and ends all ranks. */
_Noreturn void fail(const char* what, const char* name, const char* why);
/* Allocates memory; ends the program if there is none. */
void* allocate(int64_t bytes);

int64_t cells(const Box* box);
Box intersection(const Box* a, const Box* b);
Box box_of_rank(const Kernel* k, int rank);

/* Distributes the grid to all ranks of MPI_COMM_WORLD and allocates the fields without values. */
void init_kernel(Kernel* k, Box grid);
void set_to_exact(Kernel* k);
/* One time step: at least one sweep over all components, and as many as fit into `seconds`. */
void compute(Kernel* k, double seconds);
/* Compares the fields with the exact solution, prints the largest error, and fails above 1e-9. */
void verify(const Kernel* k, const char* what);

extern const char* const mode_names[MODES];
extern const int components_of[VARIABLES];
/* Writes DIRECTORY/s3d-STEP.ckpt, or DIRECTORY/step-STEP.h5. Collective. */
void write_checkpoint(const Kernel* k, enum Mode mode, const char* directory);
/* Initialises the kernel from a checkpoint; each rank reads its own box, for any number of ranks at
 * the save. Collective. */
void restart_from(Kernel* k, const char* path);

/* The same for HDF5 files (hdf5.c), also for files of pario.checkpoint. They fail if s3d was built
 * without HDF5. */
void write_hdf5(const Kernel* k, const char* path);
void restart_from_hdf5(Kernel* k, const char* path);

#endif
