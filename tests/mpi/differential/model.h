/* What the file holds, byte by byte, as every rank can tell by itself. */
#ifndef DIFFERENTIAL_MODEL_H
#define DIFFERENTIAL_MODEL_H

#include "types.h"

/* A byte is unknown where two ranks wrote it in one step; its step is 0 where nobody has. */
typedef struct {
  unsigned char *bytes, *unknown;
  unsigned* step;
  long capacity;
  long size; /* of the file; bytes behind it are zero */
} Model;

typedef struct {
  MPI_Offset displacement; /* counted from the base of the case */
  Type etype, filetype;
  long position; /* individual pointer, etypes */
  int swapped;   /* external32: leaves are turned round in the file */
} View;

void clear_model(Model* model);
void free_model(Model* model);
void reserve(Model* model, long size);
void set_model_size(Model* model, long size);

/* The byte of the file (from the base) that byte k of the view is, with `leaf` bytes in one number.
 */
long file_byte(const View* view, long k, long leaf);

/* One rank writes `count` bytes of the view from byte `first`; byte i is value(seed, i). */
void model_write(Model* model, const View* view, long leaf, long first, long count, uint64_t seed,
                 unsigned step);
unsigned char value(uint64_t seed, long i);

/* How many of `count` bytes from byte `first` of the view a read gets: those before the end of the
 * file. */
long readable(const Model* model, const View* view, long leaf, long first, long count);

#endif
