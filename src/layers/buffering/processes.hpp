// Treatments of calls that give other processes descriptors of buffered files.
#pragma once

#include "layers/buffering/treatments.hpp"

namespace pario::buffering {

/// _Fork, which runs no handlers of pthread_atfork.
struct Fork {
  static pid_t call(auto next) {
    before_fork();
    const pid_t child = next();
    if (child == 0)
      after_fork_in_child();
    else
      after_fork_in_parent();
    return child;
  }
};

/// Calls that start another program, which inherits descriptors.
struct Spawn {
  static auto call(auto next, auto... args) {
    if (pario_in_vfork_child == 0) stop_buffering_inherited();
    return next(args...);
  }
  /// posix_spawn: the file actions may copy any descriptor.
  static int call(auto next, pid_t* child, const char* path,
                  const posix_spawn_file_actions_t* actions, auto... args) {
    if (pario_in_vfork_child == 0) stop_buffering_inherited();
    if (pario_in_vfork_child == 0 && actions != nullptr && actions->__used != 0)
      buffers::stop_all_buffering(Reason::inheritance);
    return next(child, path, actions, args...);
  }
};

/// exec: the process becomes another program.
struct Execute {
  static auto call(auto next, auto... args) {
    prepare();
    return next(args...);
  }
  static void prepare() {
    const base::SavedErrno saved;
    if (pario_in_vfork_child != 0) return stop_buffering_inherited();
    flush_streams();
    buffers::flush_at_end();
    buffers::before_exec();
  }
};

/// system: starts another program and waits for its end.
struct RunCommand {
  static auto call(auto next, auto... args) {
    write_all_streams();
    buffers::before_exec();
    buffers::flush_all();
    const auto result = next(args...);
    reload_offsets();
    return result;
  }
};

/// sendmsg: the receiver of the message may use the files of its descriptors.
struct Send {
  static auto call(auto next, int socket, auto* message, auto number, auto... flags) {
    for_each_sent_descriptor(
        message, number, [](int descriptor) { stop_buffering(descriptor, Reason::inheritance); });
    return next(socket, message, number, flags...);
  }
};

}  // namespace pario::buffering
