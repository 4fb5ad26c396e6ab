/* One random case: a file, its views, and a row of steps, each done by MPI and by the model. */
#ifndef DIFFERENTIAL_CASE_H
#define DIFFERENTIAL_CASE_H

#include "access.h"
#include "model.h"

enum { kMostRanks = 64 };

/* Parts of MPI-IO that a run may leave out: what an MPI is known to do wrongly, and `holes`, bytes
 * that were never written: MPI says they are undefined, pario that they are zero. */
typedef struct {
  int eof, shared, external32, huge, split, nonblocking, large, resize, hints, status, atomic,
      derived_etype, holes;
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
  MPI_Offset base;
  MPI_Datatype number; /* what all types consist of */
  long leaf;           /* its size */
  Type leaf_type, etype_leaf;
  View views[kMostRanks];
  int same_view; /* of all ranks */
  Model model;
  unsigned step;
  long shared; /* the shared file pointer, etypes */
  int atomic;
  int failures;
} Case;

void report(Case* at, const char* format, ...) __attribute__((format(printf, 2, 3)));
/* Reports an MPI error; returns whether there was none. */
int good(Case* at, int code, const char* what);

void open_views(Case* at, int same);
void close_views(Case* at);
void transfer(Case* at);

/* Whether a byte of the file is something that can be told. */
int told(const Case* at, long byte);

/* Runs one case; returns the number of failures on this rank. */
int run_case(Case* at);
/* For the alarm: what is going on. */
extern const char* volatile doing;

#endif
