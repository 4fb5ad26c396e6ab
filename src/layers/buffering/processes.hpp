// Treatments of calls that give other processes descriptors of buffered files.
#pragma once

#include "layers/buffering/treatments.hpp"

namespace pario::buffering {

/// fork: parent and child share offsets, so that only the kernel can keep them.
template <Symbol, class>
struct Fork;
template <Symbol symbol>
struct Fork<symbol, pid_t()> {
  static pid_t call() {
    buffers::before_fork();
    const pid_t child = next<symbol, pid_t>();
    if (child == 0)
      forget_descriptors();
    else
      buffers::after_fork_in_parent();
    return child;
  }
};

/// Calls that start another program, which inherits descriptors.
template <Symbol, class>
struct Spawn;
template <Symbol symbol, class Result, class... Args>
struct Spawn<symbol, Result(Args...)> {
  static Result call(Args... args) {
    if (pario_in_vfork_child == 0) stop_buffering_inherited();
    return next<symbol, Result>(args...);
  }
};
/// posix_spawn: the file actions may copy any descriptor.
template <Symbol symbol, class... Args>
struct Spawn<symbol, int(pid_t*, const char*, const posix_spawn_file_actions_t*, Args...)> {
  static int call(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                  Args... args) {
    if (pario_in_vfork_child == 0) stop_buffering_inherited();
    if (pario_in_vfork_child == 0 && actions != nullptr && actions->__used != 0)
      buffers::stop_all_buffering(Reason::inheritance);
    return next<symbol, int>(child, path, actions, args...);
  }
};

/// exec: the process becomes another program.
template <Symbol, class>
struct Execute;
template <Symbol symbol, class Result, class... Args>
struct Execute<symbol, Result(Args...)> {
  static Result call(Args... args) {
    prepare();
    return next<symbol, Result>(args...);
  }
  static void prepare() {
    const base::SavedErrno saved;
    if (pario_in_vfork_child != 0) return stop_buffering_inherited();
    buffers::flush_all();
    buffers::before_exec();
  }
};

/// system: starts another program and waits for its end.
template <Symbol, class>
struct RunCommand;
template <Symbol symbol, class Result, class... Args>
struct RunCommand<symbol, Result(Args...)> {
  static Result call(Args... args) {
    buffers::before_exec();
    buffers::flush_all();
    const Result result = next<symbol, Result>(args...);
    reload_offsets();
    return result;
  }
};

/// sendmsg: the receiver of the message may use the files of its descriptors.
template <Symbol, class>
struct Send;
template <Symbol symbol, class Result, class Message, class Number, class... Flags>
struct Send<symbol, Result(int, Message*, Number, Flags...)> {
  static Result call(int socket, Message* message, Number number, Flags... flags) {
    for_each_sent_descriptor(
        message, number, [](int descriptor) { stop_buffering(descriptor, Reason::inheritance); });
    return next<symbol, Result>(socket, message, number, flags...);
  }
};

}  // namespace pario::buffering
