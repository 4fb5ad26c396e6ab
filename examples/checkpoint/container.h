/* Checkpoints in the format of pario.checkpoint, without pario: rank 0 creates a plain HDF5 file
 * with serial HDF5, and all ranks write into it by collective MPI-IO at the offsets of the arrays'
 * bytes, which HDF5 returns. All calls are collective. */
#ifndef CONTAINER_H
#define CONTAINER_H

#include <hdf5.h>
#include <mpi.h>

enum { AXES = 4 };

/* An array of the whole program, and this rank's part of it in memory. */
typedef struct {
  const char* name;
  int axes;
  const char* dims[AXES]; /* names of the axes; axes of one name have one length */
  int shape[AXES];        /* lengths of the whole array */
  int begin[AXES];        /* this rank's part: its first indices */
  int count[AXES];        /* and its lengths, which may be 0 */
  int memory[AXES];       /* lengths of the array in memory, ghost cells included */
  int first[AXES];        /* first indices of the part there */
  hid_t stored;           /* element type in file and memory, such as H5T_IEEE_F64LE */
  MPI_Datatype element;
  void* data;
} Array;

/* Facts of a whole checkpoint. */
typedef struct {
  long long step;
  double time;
} Moment;

/* Writes the parts of all ranks, which tile the arrays. Publishes the file when it is complete and
 * on the disk. */
void save_checkpoint(MPI_Comm comm, const char* path, const Array* arrays, int count,
                     Moment moment);

/* Reads into the parts, for any number of ranks at the save. Reads chunks and virtual datasets
 * through HDF5, other arrays by MPI-IO. */
Moment load_checkpoint(MPI_Comm comm, const char* path, const Array* arrays, int count);

/* Returns in `shape` the lengths of the first `axes` axes of an array of a checkpoint. */
void shape_in_checkpoint(MPI_Comm comm, const char* path, const char* name, int axes, int* shape);

#endif
