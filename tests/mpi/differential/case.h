/* One random case: a file, its views, and a sequence of steps, each done by MPI and the model. */
#ifndef DIFFERENTIAL_CASE_H
#define DIFFERENTIAL_CASE_H

#include "access.h"
#include "model.h"

enum { kMostRanks = 64 };

/* Parts of MPI-IO that a run may leave out: known defects of an MPI, and `holes`: bytes that were
 * never written, undefined in MPI and zero in pario. `series`: many calls without a sync between
 * them. `order`: collective calls take effect in their order without a barrier between them, as
 * pario promises. `cyclic_blocks`: cyclic darrays with blocks of several elements. `modes`: access
 * modes besides MPI_MODE_CREATE and MPI_MODE_RDWR; `sequential`: MPI_MODE_SEQUENTIAL among them. */
typedef struct {
  int eof, shared, external32, huge, split, nonblocking, large, resize, hints, status, atomic,
      derived_etype, holes, cyclic_blocks, series, order, modes, sequential;
} Features;

typedef struct {
  uint64_t seed;
  Features features;
  const char* directory;
  int verbose;

  MPI_Comm comm;
  int rank, ranks, colour;
  char path[512];
  Random random;
  MPI_File file;
  int amode;
  MPI_Offset base;
  long
      end; /* where both file pointers begin, and where the next view of MPI_MODE_SEQUENTIAL does */
  MPI_Datatype number; /* the elementary type of all types */
  long leaf;           /* size of `number` */
  Type leaf_type, etype_leaf;
  View views[kMostRanks];
  int same_view; /* all ranks have the same view */
  Model model;
  unsigned step;
  unsigned calls;                   /* calls of transfer() so far */
  int in_series;                    /* no sync precedes or follows each call */
  int writes;                       /* most calls of the series write */
  int in_order;                     /* each access of the series begins behind the one before */
  unsigned char silent[kMostRanks]; /* ranks that move nothing in most calls of the series */
  long shared;                      /* the shared file pointer, etypes */
  int atomic;
  int failures;
} Case;

static inline int has_mode(const Case* at, int mode) { return (at->amode & mode) != 0; }
void report(Case* at, const char* format, ...) __attribute__((format(printf, 2, 3)));
/* Returns 1 for MPI_SUCCESS; else reports the error and returns 0. */
int good(Case* at, int code, const char* what);

/* The view of a file that was just opened: its bytes. Only for numbers of one byte. */
void open_default_views(Case* at);
void open_views(Case* at, int same);
void close_views(Case* at);
void transfer(Case* at);

/* Returns 1 if the model knows the value that a rank reads at a byte of the file, in a collective
 * call or a call of its own. */
int is_known(const Case* at, long byte, int rank, int collective);

/* Runs one case; returns the number of failures on this rank. */
int run_case(Case* at);
/* The current call, for the message of the alarm. */
extern const char* volatile doing;

#endif
