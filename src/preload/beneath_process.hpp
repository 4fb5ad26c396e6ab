// Buffered files and other processes.
#pragma once

#include <spawn.h>
#include <sys/socket.h>

#include <cstring>

#include "preload/beneath.hpp"

namespace pario::preload::beneath {

/// Both sides of a fork have the same offset, and only the kernel can keep that.
template <Symbol, class>
struct Forking;
template <Symbol symbol>
struct Forking<symbol, pid_t()> {
  static pid_t call() {
    stream::before_fork();
    const pid_t child = next<symbol, pid_t>();
    if (child == 0)
      forget_all();
    else
      stream::after_fork_in_parent();
    return child;
  }
};

/// Another program begins, with copies of some descriptors.
template <Symbol, class>
struct Spawning;
template <Symbol symbol, class Result, class... Args>
struct Spawning<symbol, Result(Args...)> {
  static Result call(Args... args) {
    if (pario_in_vfork_child == 0) leave_inherited();
    return next<symbol, Result>(args...);
  }
};
/// What is done to descriptors in between may make a copy of any.
template <Symbol symbol, class... Args>
struct Spawning<symbol, int(pid_t*, const char*, const posix_spawn_file_actions_t*, Args...)> {
  static int call(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions, Args... args) {
    if (pario_in_vfork_child == 0) leave_inherited();
    if (pario_in_vfork_child == 0 && actions != nullptr && actions->__used != 0) stream::leave_all(Reason::inheritance);
    return next<symbol, int>(child, path, actions, args...);
  }
};

/// This process becomes another program.
template <Symbol, class>
struct Executing;
template <Symbol symbol, class Result, class... Args>
struct Executing<symbol, Result(Args...)> {
  static Result call(Args... args) {
    prepare();
    return next<symbol, Result>(args...);
  }
  static void prepare() {
    const base::SavedErrno saved;
    if (pario_in_vfork_child != 0) return leave_inherited();
    stream::flush_all();
    stream::before_exec();
  }
};

/// One that this call waits for.
template <Symbol, class>
struct Waiting;
template <Symbol symbol, class Result, class... Args>
struct Waiting<symbol, Result(Args...)> {
  static Result call(Args... args) {
    stream::before_exec();
    stream::flush_all();
    const Result result = next<symbol, Result>(args...);
    resume_all();
    return result;
  }
};

/// Calls `take` with each descriptor that a message carries.
template <class Take>
void each_carried(const msghdr& message, Take take) {
  auto* all = const_cast<msghdr*>(&message);
  for (cmsghdr* one = CMSG_FIRSTHDR(all); one != nullptr; one = CMSG_NXTHDR(all, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; CMSG_LEN(sizeof(int) * (i + 1)) <= one->cmsg_len; ++i) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(one) + i * sizeof descriptor, sizeof descriptor);
      take(descriptor);
    }
  }
}
template <class Take>
void each_carried(const mmsghdr* messages, unsigned count, Take take) {
  for (unsigned i = 0; i < count; ++i) each_carried(messages[i].msg_hdr, take);
}
template <class Take>
void each_carried(const msghdr* message, int, Take take) {
  each_carried(*message, take);
}

/// Whoever receives the message has the files from then on, too.
template <Symbol, class>
struct Handing;
template <Symbol symbol, class Result, class Message, class Number, class... Flags>
struct Handing<symbol, Result(int, Message*, Number, Flags...)> {
  static Result call(int socket, Message* message, Number number, Flags... flags) {
    each_carried(message, number, [](int descriptor) {
      if (stream::Handle* handle = handle_of(descriptor)) stream::leave(*handle, Reason::inheritance);
    });
    return next<symbol, Result>(socket, message, number, flags...);
  }
};

}  // namespace pario::preload::beneath
