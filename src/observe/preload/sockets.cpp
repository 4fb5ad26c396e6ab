// Wrappers of calls on sockets: their bytes are counted, not their files. Layers need sendmsg,
// because messages may hold descriptors.
#include <sys/socket.h>

#include "observe/preload/calls.hpp"

using namespace pario::preload;
namespace trace = pario::trace;

namespace {

/// Makes the real call, which the log shows meanwhile, and counts the bytes of its messages.
template <class Real, class Bytes>
auto trace_message(Symbol symbol, trace::Op op, Real real, Bytes bytes) {
  if (!active()) return real();
  return count_call(start_alone(symbol), real, [&](Span span, auto result) {
    const std::int64_t moved = result < 0 ? -1 : bytes(result);
    trace::count_message(op, moved);
    count_wait(symbol, span, moved);
  });
}

template <class Real>
ssize_t trace_message(Symbol symbol, trace::Op op, Real real) {
  return trace_message(symbol, op, real, [](ssize_t moved) { return moved; });
}

std::int64_t sum_bytes(const mmsghdr* messages, int count) {
  std::int64_t sum = 0;
  for (int i = 0; i < count; ++i) sum += messages[i].msg_len;
  return sum;
}

}  // namespace

PARIO_WRAP(ssize_t, recv, int fd, void* data, size_t size, int flags) {
  return trace_message(Symbol::recv, trace::Op::read,
                       [&] { return PARIO_REAL(recv)(fd, data, size, flags); });
}
PARIO_WRAP(ssize_t, __recv_chk, int fd, void* data, size_t size, size_t capacity, int flags) {
  return trace_message(Symbol::__recv_chk, trace::Op::read,
                       [&] { return PARIO_REAL(__recv_chk)(fd, data, size, capacity, flags); });
}
PARIO_WRAP(ssize_t, recvfrom, int fd, void* data, size_t size, int flags, sockaddr* from,
           socklen_t* length) {
  return trace_message(Symbol::recvfrom, trace::Op::read,
                       [&] { return PARIO_REAL(recvfrom)(fd, data, size, flags, from, length); });
}
PARIO_WRAP(ssize_t, __recvfrom_chk, int fd, void* data, size_t size, size_t capacity, int flags,
           sockaddr* from, socklen_t* length) {
  return trace_message(Symbol::__recvfrom_chk, trace::Op::read, [&] {
    return PARIO_REAL(__recvfrom_chk)(fd, data, size, capacity, flags, from, length);
  });
}
PARIO_WRAP(ssize_t, recvmsg, int fd, msghdr* message, int flags) {
  return trace_message(Symbol::recvmsg, trace::Op::read,
                       [&] { return PARIO_REAL(recvmsg)(fd, message, flags); });
}
PARIO_WRAP(int, recvmmsg, int fd, mmsghdr* messages, unsigned count, int flags,
           timespec* patience) {
  return trace_message(
      Symbol::recvmmsg, trace::Op::read,
      [&] { return PARIO_REAL(recvmmsg)(fd, messages, count, flags, patience); },
      [&](int received) { return sum_bytes(messages, received); });
}
PARIO_WRAP(ssize_t, send, int fd, const void* data, size_t size, int flags) {
  return trace_message(Symbol::send, trace::Op::write,
                       [&] { return PARIO_REAL(send)(fd, data, size, flags); });
}
PARIO_WRAP(ssize_t, sendto, int fd, const void* data, size_t size, int flags, const sockaddr* to,
           socklen_t length) {
  return trace_message(Symbol::sendto, trace::Op::write,
                       [&] { return PARIO_REAL(sendto)(fd, data, size, flags, to, length); });
}
PARIO_WRAP(ssize_t, sendmsg, int fd, const msghdr* message, int flags) {
  return trace_message(Symbol::sendmsg, trace::Op::write,
                       [&] { return PARIO_REAL(sendmsg)(fd, message, flags); });
}
PARIO_WRAP(int, sendmmsg, int fd, mmsghdr* messages, unsigned count, int flags) {
  return trace_message(
      Symbol::sendmmsg, trace::Op::write,
      [&] { return PARIO_REAL(sendmmsg)(fd, messages, count, flags); },
      [&](int sent) { return sum_bytes(messages, sent); });
}
