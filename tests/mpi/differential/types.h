/* Random datatypes, each as an MPI datatype and as a list of bytes computed without MPI. */
#ifndef DIFFERENTIAL_TYPES_H
#define DIFFERENTIAL_TYPES_H

#include <mpi.h>

#include "random.h"

/* `before`: bytes of the type in the pieces before this one. */
typedef struct {
  long at, length, before;
} Piece;

/* Pieces are in the order of the type map. No bytes of the type, or of its repetitions, overlap. */
typedef struct {
  MPI_Datatype handle;
  long size, lb, extent;
  Piece* pieces;
  long count;
  int predefined;
} Type;

/* The use of a type: in a file, displacements are ascending and not negative. */
enum { kInFile = 0, kInMemory = 1 };

Type type_of(MPI_Datatype predefined, long size);
Type random_type(Random* random, const Type* leaf, int where, int depth);
/* One rank's part of a tiling that the ranks share: each leaf of a tile belongs to one rank or to
 * none. */
Type random_part(Random* random, const Type* leaf, int ranks, int rank);
/* One rank's block of a distributed array. `cyclic_blocks`: of blocks of several elements, too. */
Type random_block(Random* random, const Type* leaf, int ranks, int rank, int cyclic_blocks);
Type nothing_of(const Type* leaf);
Type twin(const Type* type);
void free_type(Type* type);

/* Returns the offset of byte k of repetitions of the type. */
long byte_at(const Type* type, long k);
/* Sets the first byte and the end of `count` repetitions (0, 0: none). */
void span(const Type* type, long count, long* first, long* end);
/* Returns 1 if MPI's size, lower bound, extent and packed bytes are those of the model. */
int agrees(const Type* type);

#endif
