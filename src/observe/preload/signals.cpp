// Wrappers of calls that set the actions of signals. They count nothing: a layer keeps its own
// action for some signals.
#include <signal.h>

#include "observe/preload/wrap.hpp"

using namespace pario::preload;

#define ACTION(name)                                                                              \
  PARIO_WRAP(int, name, int signal, const struct sigaction* action, struct sigaction* previous) { \
    return PARIO_REAL(name)(signal, action, previous);                                            \
  }
ACTION(sigaction)
ACTION(__sigaction)

#define HANDLER(name)                                                \
  PARIO_WRAP(sighandler_t, name, int signal, sighandler_t handler) { \
    return PARIO_REAL(name)(signal, handler);                        \
  }
HANDLER(signal)
HANDLER(bsd_signal)
HANDLER(ssignal)
HANDLER(sysv_signal)
HANDLER(__sysv_signal)
HANDLER(sigset)
