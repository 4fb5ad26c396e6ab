// Signals whose default action ends the process. The kernel has a handler of this layer for them,
// which writes the dirty bytes and then ends the process by the signal; the program sees their
// default action.
#pragma once

#include <signal.h>

#include "layers/buffering/buffering.hpp"

namespace pario::buffering {

/// Installs the handler where the program has the default action, and an alternative stack for the
/// main thread, because the end may be that of a stack that is full.
void catch_deadly_signals();

/// As sigaction(2) of the program. The handler replaces the default action, also after a handler
/// that acts once (SA_RESETHAND).
int set_action(int signal, const struct sigaction* action, struct sigaction* previous);
/// The handler that the program has set, where the kernel returned `handler`.
sighandler_t visible_handler(int signal, sighandler_t handler);

// ---- treatments

struct SetAction {
  static int call(auto, int signal, const struct sigaction* action, struct sigaction* previous) {
    return set_action(signal, action, previous);
  }
};

/// signal and its variants.
struct SetHandler {
  static sighandler_t call(auto next, int signal, sighandler_t handler) {
    constexpr bool acts_once =
        next.kSymbol == Symbol::sysv_signal || next.kSymbol == Symbol::__sysv_signal;
    struct sigaction action = {}, previous;
    action.sa_handler = handler;
    action.sa_flags = acts_once ? SA_RESETHAND | SA_NODEFER : 0;
    if (next.kSymbol != Symbol::sigset && (acts_once || handler == SIG_DFL))
      return set_action(signal, &action, &previous) == 0 ? previous.sa_handler : SIG_ERR;
    const sighandler_t before = visible_handler(signal, next(signal, handler));
    if (next.kSymbol == Symbol::sigset && handler == SIG_DFL) set_action(signal, &action, nullptr);
    return before;
  }
};

}  // namespace pario::buffering
