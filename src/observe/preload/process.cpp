#include "observe/preload/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <unistd.h>

#include <alloca.h>
#include <cstdarg>

#include "core/base/base.hpp"
#include "observe/preload/calls.hpp"
#include "observe/preload/images.hpp"

using namespace pario::preload;
using pario::base::SavedErrno;
namespace trace = pario::trace;

namespace {

constexpr const char* kShell = "/bin/sh";

/// Completes the log before a call that ends the process image. If the call fails, counting
/// continues.
void end_image(EndKind kind, int code) {
  if (!active()) return;
  const SavedErrno saved;
  finish_tracing(kind, code);
}

int count_until_null(va_list arguments) {
  int count = 1;
  while (va_arg(arguments, char*) != nullptr) ++count;
  return count;
}

}  // namespace

// The C library's fork runs the handlers of pthread_atfork, ours among them; _Fork runs none.
PARIO_WRAP(pid_t, fork, void) {
  if (!active()) return PARIO_REAL(fork)();
  const std::uint64_t start = trace::ticks();
  const pid_t child = PARIO_REAL(fork)();
  if (child == 0)
    begin_child();
  else
    in_tracer([&] { count_alone(Symbol::fork, {start, trace::ticks()}, child < 0); });
  return child;
}

PARIO_WRAP(pid_t, _Fork, void) {
  if (!active()) return PARIO_REAL(_Fork)();
  descriptors::share_all();
  const pid_t child = PARIO_REAL(_Fork)();
  if (child == 0) begin_child();
  return child;
}

#define EXEC(name, program, variables, parameters, arguments) \
  PARIO_WRAP(int, name, PARIO_LIST parameters) {              \
    note_unseen(program, variables);                          \
    end_image(kEndExec, 0);                                   \
    return PARIO_REAL(name) arguments;                        \
  }
#define PARIO_LIST(...) __VA_ARGS__

EXEC(execv, path, environ, (const char* path, char* const* words), (path, words))
EXEC(execve, path, environment, (const char* path, char* const* words, char* const* environment),
     (path, words, environment))
EXEC(execvp, file, environ, (const char* file, char* const* words), (file, words))
EXEC(execvpe, file, environment, (const char* file, char* const* words, char* const* environment),
     (file, words, environment))
EXEC(fexecve, words == nullptr ? nullptr : words[0], environment,
     (int fd, char* const* words, char* const* environment), (fd, words, environment))
EXEC(execveat, path, environment,
     (int directory, const char* path, char* const* words, char* const* environment, int flags),
     (directory, path, words, environment, flags))

// The arguments of a variadic exec, as an array on the stack. `environment` may follow them.
#define WORDS_OF(word)                                                                    \
  va_list arguments;                                                                      \
  va_start(arguments, word);                                                              \
  const int count = count_until_null(arguments);                                          \
  va_end(arguments);                                                                      \
  auto** words =                                                                          \
      static_cast<char**>(alloca((static_cast<std::size_t>(count) + 1) * sizeof(char*))); \
  va_start(arguments, word);                                                              \
  words[0] = const_cast<char*>(word);                                                     \
  for (int i = 1; i <= count; ++i) words[i] = va_arg(arguments, char*);

PARIO_WRAP(int, execl, const char* path, const char* word, ...) {
  WORDS_OF(word)
  va_end(arguments);
  return pario_execv(path, words);
}

PARIO_WRAP(int, execlp, const char* file, const char* word, ...) {
  WORDS_OF(word)
  va_end(arguments);
  return pario_execvp(file, words);
}

PARIO_WRAP(int, execle, const char* path, const char* word, ...) {
  WORDS_OF(word)
  char* const* environment = va_arg(arguments, char* const*);
  va_end(arguments);
  return pario_execve(path, words, environment);
}

#define SPAWN(name)                                                                                \
  PARIO_WRAP(int, name, pid_t* child, const char* path, const posix_spawn_file_actions_t* actions, \
             const posix_spawnattr_t* attributes, char* const* words, char* const* environment) {  \
    note_unseen(path, environment);                                                                \
    return -trace_alone(Symbol::name, [&] {                                                        \
      return -PARIO_REAL(name)(child, path, actions, attributes, words, environment);              \
    });                                                                                            \
  }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)

PARIO_WRAP(int, system, const char* command) {
  note_unseen(kShell, environ);
  return trace_alone(Symbol::system, [&] { return PARIO_REAL(system)(command); });
}

PARIO_WRAP(FILE*, popen, const char* command, const char* mode) {
  note_unseen(kShell, environ);
  return trace_alone(Symbol::popen, [&] { return PARIO_REAL(popen)(command, mode); });
}

PARIO_WRAP(int, pclose, FILE* stream) {
  if (active()) descriptors::forget(fileno(stream));
  return trace_alone(Symbol::pclose, [&] { return PARIO_REAL(pclose)(stream); });
}

#define END(name, kind)                                          \
  PARIO_WRAP(__attribute__((noreturn)) void, name, int status) { \
    end_image(kind, status);                                     \
    PARIO_REAL(name)(status);                                    \
    __builtin_unreachable();                                     \
  }
END(_exit, kEndImmediate)
END(_Exit, kEndImmediate)
END(quick_exit, kEndImmediate)

PARIO_WRAP(__attribute__((noreturn)) void, abort, void) {
  end_image(kEndAbort, SIGABRT);
  PARIO_REAL(abort)();
  __builtin_unreachable();
}
