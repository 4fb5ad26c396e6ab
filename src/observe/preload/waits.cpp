// The waits of a process for its children. The log of a child that a signal has killed cannot say
// so; the log of its parent names the signal.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>

#include "core/base/base.hpp"
#include "observe/preload/calls.hpp"

using namespace pario::preload;
namespace base = pario::base;
namespace trace = pario::trace;

namespace {

constexpr int kMostNotes = 100;  // of a process, which may kill its workers for hours

/// Adds a note of a child that a signal has killed.
void note_killed(pid_t child, int signal) {
  static constinit std::atomic<int> noted{0};
  if (!active() || noted.load(std::memory_order_relaxed) >= kMostNotes) return;
  const base::SavedErrno saved;
  in_tracer([&] {
    if (noted.fetch_add(1, std::memory_order_relaxed) >= kMostNotes) return;
    base::Text<128> text;
    base::Json json(text);
    json.begin_object().member("note", "killed").member("pid", child);
    trace::note(json.member("signal", signal).end_object().view());
  });
}

void note_end(pid_t child, int status) {
  if (child > 0 && WIFSIGNALED(status)) note_killed(child, WTERMSIG(status));
}

}  // namespace

PARIO_WRAP(pid_t, wait, int* status) {
  int own = 0;
  if (status == nullptr) status = &own;
  const pid_t child = PARIO_REAL(wait)(status);
  note_end(child, *status);
  return child;
}

PARIO_WRAP(pid_t, waitpid, pid_t which, int* status, int options) {
  int own = 0;
  if (status == nullptr) status = &own;
  const pid_t child = PARIO_REAL(waitpid)(which, status, options);
  note_end(child, *status);
  return child;
}

PARIO_WRAP(pid_t, wait3, int* status, int options, rusage* usage) {
  int own = 0;
  if (status == nullptr) status = &own;
  const pid_t child = PARIO_REAL(wait3)(status, options, usage);
  note_end(child, *status);
  return child;
}

PARIO_WRAP(pid_t, wait4, pid_t which, int* status, int options, rusage* usage) {
  int own = 0;
  if (status == nullptr) status = &own;
  const pid_t child = PARIO_REAL(wait4)(which, status, options, usage);
  note_end(child, *status);
  return child;
}

PARIO_WRAP(int, waitid, idtype_t kind, id_t which, siginfo_t* found, int options) {
  siginfo_t own{};
  if (found == nullptr) found = &own;
  const int result = PARIO_REAL(waitid)(kind, which, found, options);
  if (result == 0 && (options & WNOWAIT) == 0 && found->si_pid > 0 &&
      (found->si_code == CLD_KILLED || found->si_code == CLD_DUMPED))
    note_killed(found->si_pid, found->si_status);
  return result;
}
