/* Every routine of MPI-IO that moves data, as one call. */
#ifndef DIFFERENTIAL_ACCESS_H
#define DIFFERENTIAL_ACCESS_H

#include <mpi.h>

/* How the call gets its offset. */
enum { kExplicit, kIndividual, kShared };
/* How the call ends. */
enum { kBlocking, kNonblocking, kSplit };

typedef struct {
  int place, collective, ending, write, large;
} Routine;

typedef struct {
  MPI_File file;
  MPI_Offset offset;
  void* buffer;
  MPI_Count count;
  MPI_Datatype type;
} Call;

const char* name_of(const Routine* routine);
/* Starts an access, and completes it if it blocks. end_access completes a split collective; a wait
 * for *request completes a nonblocking call. */
int start_access(const Routine* routine, const Call* call, MPI_Request* request,
                 MPI_Status* status);
int end_access(const Routine* routine, const Call* call, MPI_Status* status);

#endif
