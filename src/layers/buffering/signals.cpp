#include "layers/buffering/signals.hpp"

#include <algorithm>
#include <array>

#include "layers/buffering/streams.hpp"

namespace pario::buffering {
namespace {

constexpr std::size_t kAlternativeStackBytes = 64 << 10;

/// The actions that the program has set, where the kernel has one of this layer.
constinit std::array<struct sigaction, NSIG> program_actions{};

/// True for signals that a program can catch, and whose default action ends it.
bool is_deadly(int signal) {
  constexpr std::array kOthers = {SIGKILL, SIGSTOP, SIGCHLD,  SIGCONT, SIGURG,
                                  SIGTSTP, SIGTTIN, SIGWINCH, SIGTTOU};
  const bool belongs_to_libc = signal >= __SIGRTMIN && signal < SIGRTMIN;
  return signal > 0 && signal < NSIG && !belongs_to_libc &&
         std::ranges::find(kOthers, signal) == kOthers.end();
}

bool is_default(const struct sigaction& action) { return action.sa_handler == SIG_DFL; }

int set_kernel_action(int signal, const struct sigaction* action, struct sigaction* previous) {
  return chain::next<chain::LayerId::buffering, Symbol::sigaction, int>(signal, action, previous);
}

/// Writes the dirty bytes once, also if several threads end the process at a time. The others wait
/// for the end.
void write_dirty_bytes() {
  static constinit std::atomic<long> writer{0};
  const long self = base::system_call(SYS_gettid);
  long expected = 0;
  if (!writer.compare_exchange_strong(expected, self)) {
    if (expected == self) return;  // an error in the lines below
    for (;;) base::system_call(SYS_ppoll, nullptr, 0, nullptr, nullptr);
  }
  buffers::flush_in_signal_handler();
  write_pending_bytes();
}

void handle_deadly_signal(int signal) {
  if (pario_in_vfork_child == 0) write_dirty_bytes();
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;
  set_kernel_action(signal, &plain, nullptr);
  raise(signal);
}

struct sigaction deadly_action() {
  struct sigaction action = {};
  action.sa_handler = handle_deadly_signal;
  action.sa_flags = SA_NODEFER | SA_ONSTACK;
  return action;
}

/// Calls a handler of the program that acts once, after it has been replaced.
void call_once(int signal, siginfo_t* info, void* context) {
  const struct sigaction action = program_actions[static_cast<std::size_t>(signal)];
  const struct sigaction deadly = deadly_action();
  set_kernel_action(signal, &deadly, nullptr);
  program_actions[static_cast<std::size_t>(signal)] = {};
  if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(signal, info, context);
  if (!is_default(action)) action.sa_handler(signal);
}

bool is_own(const struct sigaction& action) {
  return action.sa_handler == handle_deadly_signal || action.sa_sigaction == call_once;
}

/// The action of this layer in the place of the program's.
struct sigaction replacement_of(const struct sigaction& action) {
  if (is_default(action)) return deadly_action();
  struct sigaction once = action;
  once.sa_flags = (action.sa_flags & ~static_cast<int>(SA_RESETHAND)) | SA_SIGINFO;
  once.sa_sigaction = call_once;
  return once;
}

bool needs_replacement(const struct sigaction& action) {
  return is_default(action) ||
         ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0 && action.sa_handler != SIG_IGN);
}

void set_alternative_stack() {
  stack_t stack;
  if (sigaltstack(nullptr, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0) return;
  std::byte* memory = base::map_memory(kAlternativeStackBytes);
  if (memory == nullptr) return;
  stack = {.ss_sp = memory, .ss_flags = 0, .ss_size = kAlternativeStackBytes};
  sigaltstack(&stack, nullptr);
}

}  // namespace

void catch_deadly_signals() {
  set_alternative_stack();
  const struct sigaction deadly = deadly_action();
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction now;
    if (is_deadly(signal) && set_kernel_action(signal, nullptr, &now) == 0 && is_default(now))
      set_kernel_action(signal, &deadly, nullptr);
  }
}

int set_action(int signal, const struct sigaction* action, struct sigaction* previous) {
  if (!is_deadly(signal) || pario_in_vfork_child != 0 || !is_active())
    return set_kernel_action(signal, action, previous);
  struct sigaction& stored = program_actions[static_cast<std::size_t>(signal)];
  const struct sigaction before = stored;
  struct sigaction given, kernels;
  if (action != nullptr && needs_replacement(*action)) {
    given = replacement_of(*action);
    stored = *action;  // first: the handler may run at once
    action = &given;
  }
  const int result = set_kernel_action(signal, action, &kernels);
  if (result == 0 && previous != nullptr) *previous = is_own(kernels) ? before : kernels;
  return result;
}

sighandler_t visible_handler(int signal, sighandler_t handler) {
  struct sigaction action = {};
  action.sa_handler = handler;
  return is_deadly(signal) && is_own(action)
             ? program_actions[static_cast<std::size_t>(signal)].sa_handler
             : handler;
}

}  // namespace pario::buffering
