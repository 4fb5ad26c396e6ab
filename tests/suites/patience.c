/* More ranks than cores: a rank that waits in the MPI sleeps a little between its looks, so that
 * those it waits for can run. Without this a program of some seconds takes minutes on a busy
 * machine. Preloaded; UCX does the looking for MPICH, and for Open MPI where it uses UCX.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <time.h>

enum { looks_before_sleep = 200 };

typedef unsigned (*Progress)(void*);

/* UCX may have been loaded for the MPI alone (mpi4py does so): then it is not among the next ones.
 */
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
  if (idle > looks_before_sleep) nanosleep(&pause, NULL);
  return moved;
}
