/* Makes a rank that waits in the MPI sleep between its polls, so that the other ranks can run if
 * there are more ranks than cores. Without this a program of some seconds takes minutes on a busy
 * machine. Preloaded; UCX polls for MPICH, and for Open MPI where it uses UCX.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

enum { polls_before_sleep = 200 };

typedef unsigned (*Progress)(void*);

/* Finds UCX's function. If UCX was loaded locally for the MPI (by mpi4py), RTLD_NEXT misses it. */
static Progress ucx(void) {
  void* const next = dlsym(RTLD_NEXT, "ucp_worker_progress");
  return (Progress)(next ? next
                         : dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD),
                                 "ucp_worker_progress"));
}

unsigned ucp_worker_progress(void* worker) {
  static Progress progress;
  static unsigned idle;
  const struct timespec pause = {0, 20000};
  if (!progress) progress = ucx();
  const unsigned moved = progress(worker);
  idle = moved ? 0 : idle + 1;
  if (idle > polls_before_sleep) nanosleep(&pause, NULL);
  return moved;
}
