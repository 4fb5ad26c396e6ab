/* Checkpoints as pario.checkpoint makes them, without pario: a plain HDF5 file, made by rank 0 with
 * serial HDF5, into which all ranks write by collective MPI-IO. HDF5 says where in the file the
 * bytes of each array begin. All calls are collective. */
#ifndef CONTAINER_H
#define CONTAINER_H

#include <hdf5.h>
#include <mpi.h>

enum { AXES = 4 };

/* An array of the whole program, and the part of it that this rank has in memory. */
typedef struct {
  const char* name;
  int axes;
  const char* dims[AXES]; /* names of the axes; axes of one name have one length */
  int shape[AXES];        /* of the whole array */
  int begin[AXES];        /* this rank's part: where it begins, */
  int count[AXES];        /* and its lengths, which may be 0 */
  int memory[AXES];       /* of what is in memory, ghost cells included, */
  int first[AXES];        /* and where the part begins there */
  hid_t
      stored; /* type of an element in the file, as H5T_IEEE_F64LE; the same bytes are in memory */
  MPI_Datatype element;
  void* data;
} Array;

/* What is true of a checkpoint as a whole. */
typedef struct {
  long long step;
  double time;
} Moment;

/* Writes the parts of all ranks, which tile the arrays. The file has its name when it is complete
 * and on the disk. */
void save_checkpoint(MPI_Comm comm, const char* path, const Array* arrays, int count,
                     Moment moment);

/* Reads into the parts, however many ranks have saved them; what only HDF5 can read (chunks,
 * virtual datasets), it reads. */
Moment load_checkpoint(MPI_Comm comm, const char* path, const Array* arrays, int count);

/* The lengths of the first `axes` axes of an array of a checkpoint. */
void shape_in_checkpoint(MPI_Comm comm, const char* path, const char* name, int axes, int* shape);

#endif
