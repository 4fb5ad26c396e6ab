/* The expected contents of the file, byte by byte; every rank computes it without communication. */
#ifndef DIFFERENTIAL_MODEL_H
#define DIFFERENTIAL_MODEL_H

#include "types.h"

/* The last write of a byte. */
typedef struct {
  unsigned step;  /* 0: no rank wrote it */
  unsigned epoch; /* syncs of all ranks before the write */
  int rank;       /* kMany: several ranks since the last sync, in an order that is not defined */
} Writer;

enum { kMany = -1 };

/* A byte is unknown if two ranks wrote it in one step, or, if `merges`, without a sync in between.
 */
typedef struct {
  unsigned char *bytes, *unknown;
  Writer* writers;
  long capacity;
  long size;        /* of the file; bytes beyond it are zero */
  long synced_size; /* at the last sync */
  unsigned epoch;   /* syncs so far */
  int merges;       /* collective writes may be delayed until a collective read or a sync */
} Model;

typedef struct {
  MPI_Offset displacement; /* counted from the base of the case */
  Type etype, filetype;
  long position; /* individual pointer, etypes */
  int swapped;   /* external32: the bytes of each leaf are swapped in the file */
} View;

void clear_model(Model* model);
void free_model(Model* model);
void reserve(Model* model, long size);
void set_model_size(Model* model, long size);

/* Returns the offset in the file (from the base) of byte k of the view; a number has `leaf` bytes.
 */
long file_byte(const View* view, long k, long leaf);

/* One rank writes `count` bytes of the view from byte `first`; byte i is value(seed, i). `writer`:
 * without its epoch. */
void model_write(Model* model, const View* view, long leaf, long first, long count, uint64_t seed,
                 Writer writer);
void model_sync(Model* model);
unsigned char value(uint64_t seed, long i);

/* Returns how many of `count` bytes from byte `first` of the view lie before the end of the file.
 */
long readable(const Model* model, const View* view, long leaf, long first, long count);

#endif
