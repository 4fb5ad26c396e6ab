/* Random datatypes, each as MPI has it and as a list of bytes that does not ask MPI. */
#ifndef DIFFERENTIAL_TYPES_H
#define DIFFERENTIAL_TYPES_H

#include <mpi.h>

#include "random.h"

/* `before`: bytes of the type in the pieces before this one. */
typedef struct {
  long at, length, before;
} Piece;

/* Pieces are in the order of the type map. No two bytes of the type, or of its repetitions, are the
 * same. */
typedef struct {
  MPI_Datatype handle;
  long size, lb, extent;
  Piece* pieces;
  long count;
  int predefined;
} Type;

/* What a type may be: in a file, displacements do not fall and are not negative. */
enum { kInFile = 0, kInMemory = 1 };

Type type_of(MPI_Datatype predefined, long size);
Type random_type(Random* random, const Type* leaf, int where, int depth);
/* One rank's part of a tiling that the ranks share: each leaf of a tile belongs to one of them or
 * to nobody. */
Type random_part(Random* random, const Type* leaf, int ranks, int rank);
/* One rank's block of a distributed array (darray or subarray). */
Type random_block(Random* random, const Type* leaf, int ranks, int rank);
Type nothing_of(const Type* leaf);
Type twin(const Type* type);
void free_type(Type* type);

/* Where byte k of repetitions of the type is. */
long byte_at(const Type* type, long k);
/* First byte and the byte behind the last, of `count` repetitions (0, 0: none). */
void span(const Type* type, long count, long* first, long* end);
/* Whether MPI sees size, lower bound and extent as we do. */
int agrees(const Type* type);

#endif
