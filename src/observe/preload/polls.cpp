// Wrappers of calls that wait until descriptors are ready, or for connections: time in them is
// waiting for another process, or for a user. Calls without descriptors only sleep, and are passed
// on.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "observe/preload/calls.hpp"

using namespace pario::preload;

bool pario::preload::is_main_thread() {
  return base::system_call(SYS_gettid) == base::system_call(SYS_getpid);
}

PARIO_WRAP(int, poll, pollfd* waited, nfds_t count, int patience) {
  const auto real = [&] { return PARIO_REAL(poll)(waited, count, patience); };
  return count == 0 ? real() : trace_peer_wait(Symbol::poll, real);
}
PARIO_WRAP(int, __poll_chk, pollfd* waited, nfds_t count, int patience, size_t capacity) {
  const auto real = [&] { return PARIO_REAL(__poll_chk)(waited, count, patience, capacity); };
  return count == 0 ? real() : trace_peer_wait(Symbol::__poll_chk, real);
}
PARIO_WRAP(int, ppoll, pollfd* waited, nfds_t count, const timespec* patience,
           const sigset_t* signals) {
  const auto real = [&] { return PARIO_REAL(ppoll)(waited, count, patience, signals); };
  return count == 0 ? real() : trace_peer_wait(Symbol::ppoll, real);
}
PARIO_WRAP(int, __ppoll_chk, pollfd* waited, nfds_t count, const timespec* patience,
           const sigset_t* signals, size_t capacity) {
  const auto real = [&] {
    return PARIO_REAL(__ppoll_chk)(waited, count, patience, signals, capacity);
  };
  return count == 0 ? real() : trace_peer_wait(Symbol::__ppoll_chk, real);
}
PARIO_WRAP(int, select, int count, fd_set* readable, fd_set* writable, fd_set* urgent,
           timeval* patience) {
  const auto real = [&] { return PARIO_REAL(select)(count, readable, writable, urgent, patience); };
  return count == 0 ? real() : trace_peer_wait(Symbol::select, real);
}
PARIO_WRAP(int, pselect, int count, fd_set* readable, fd_set* writable, fd_set* urgent,
           const timespec* patience, const sigset_t* signals) {
  const auto real = [&] {
    return PARIO_REAL(pselect)(count, readable, writable, urgent, patience, signals);
  };
  return count == 0 ? real() : trace_peer_wait(Symbol::pselect, real);
}
PARIO_WRAP(int, epoll_wait, int fd, epoll_event* events, int capacity, int patience) {
  return trace_peer_wait(Symbol::epoll_wait,
                         [&] { return PARIO_REAL(epoll_wait)(fd, events, capacity, patience); });
}
PARIO_WRAP(int, epoll_pwait, int fd, epoll_event* events, int capacity, int patience,
           const sigset_t* signals) {
  return trace_peer_wait(Symbol::epoll_pwait, [&] {
    return PARIO_REAL(epoll_pwait)(fd, events, capacity, patience, signals);
  });
}
PARIO_WRAP(int, epoll_pwait2, int fd, epoll_event* events, int capacity, const timespec* patience,
           const sigset_t* signals) {
  return trace_peer_wait(Symbol::epoll_pwait2, [&] {
    return PARIO_REAL(epoll_pwait2)(fd, events, capacity, patience, signals);
  });
}
PARIO_WRAP(int, accept, int fd, sockaddr* address, socklen_t* length) {
  return trace_peer_wait(Symbol::accept, [&] { return PARIO_REAL(accept)(fd, address, length); });
}
PARIO_WRAP(int, accept4, int fd, sockaddr* address, socklen_t* length, int flags) {
  return trace_peer_wait(Symbol::accept4,
                         [&] { return PARIO_REAL(accept4)(fd, address, length, flags); });
}
PARIO_WRAP(int, connect, int fd, const sockaddr* address, socklen_t length) {
  return trace_peer_wait(Symbol::connect, [&] { return PARIO_REAL(connect)(fd, address, length); });
}
