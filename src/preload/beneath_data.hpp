// Reads, writes and seeks of buffered files.
#pragma once

#include <linux/fs.h>
#include <sys/ioctl.h>

#include "preload/beneath.hpp"

namespace pario::preload::beneath {

/// The data of a call as pieces: one, or a vector that the kernel would take.
struct Pieces {
  Pieces(const void* data, std::size_t size) : one{const_cast<void*>(data), size}, all(&one, 1) {}
  Pieces(const iovec* pieces, int count) : all(pieces, count < 0 || count > 1024 ? 0 : static_cast<std::size_t>(count)) {}
  iovec one = {};
  std::span<const iovec> all;
};

using Move = long (*)(stream::Handle&, std::span<const iovec>, stream::At);

/// kPass: the buffers have nothing to do with it. A vector that the kernel refuses is its to refuse.
inline long moved(Move move, int descriptor, const Pieces& pieces, stream::At at) {
  stream::Handle* handle = handle_of(descriptor);
  if (handle == nullptr) [[unlikely]]
    leave_in_vfork_child(descriptor);
  if (handle == nullptr || pieces.all.empty()) return stream::kPass;
  return move(*handle, pieces.all, at);
}

template <Symbol symbol, Move move, class First, class Second, class... Rest>
ssize_t transferred(int descriptor, First data, Second size, Rest... rest) {
  const long result = moved(move, descriptor, Pieces(data, size), {});
  return result != stream::kPass ? answer(result) : next<symbol, ssize_t>(descriptor, data, size, rest...);
}

template <Symbol symbol, Move move, class First, class Second, class... Rest>
ssize_t transferred_at(int descriptor, First data, Second size, off_t offset, Rest... rest) {
  const long result = offset < 0 ? stream::kPass : moved(move, descriptor, Pieces(data, size), static_cast<std::uint64_t>(offset));
  return result != stream::kPass ? answer(result) : next<symbol, ssize_t>(descriptor, data, size, offset, rest...);
}

#define PARIO_TRANSFER(name, function, move)                                                                  \
  template <Symbol, class>                                                                                    \
  struct name;                                                                                                \
  template <Symbol symbol, class... Args>                                                                     \
  struct name<symbol, ssize_t(int, Args...)> {                                                                \
    static ssize_t call(int descriptor, Args... args) { return function<symbol, move>(descriptor, args...); } \
  };
PARIO_TRANSFER(Reading, transferred, stream::read)
PARIO_TRANSFER(Writing, transferred, stream::write)
PARIO_TRANSFER(ReadingAt, transferred_at, stream::read)
PARIO_TRANSFER(WritingAt, transferred_at, stream::write)
#undef PARIO_TRANSFER

template <Symbol, class>
struct Seeking;
template <Symbol symbol>
struct Seeking<symbol, off_t(int, off_t, int)> {
  static off_t call(int descriptor, off_t offset, int whence) {
    stream::Handle* handle = handle_of(descriptor);
    const long result = handle == nullptr ? stream::kPass : stream::seek(*handle, offset, whence);
    return result != stream::kPass ? answer(result) : next<symbol, off_t>(descriptor, offset, whence);
  }
};

/// A descriptor whose file is settled for one call.
class Calm {
 public:
  explicit Calm(int descriptor) : handle_(handle_of(descriptor)) {
    if (handle_ != nullptr) stream::settle(*handle_);
  }
  ~Calm() {
    if (handle_ != nullptr) stream::resume(*handle_);
  }
  Calm(const Calm&) = delete;
  Calm& operator=(const Calm&) = delete;

 private:
  stream::Handle* handle_;
};

template <Symbol, class>
struct Between;
template <Symbol symbol>
struct Between<symbol, ssize_t(int, int, off_t*, size_t)> {
  static ssize_t call(int out, int in, off_t* offset, size_t size) {
    const Calm target(out), source(in);
    return next<symbol, ssize_t>(out, in, offset, size);
  }
};

template <Symbol, class>
struct BetweenAt;
template <Symbol symbol>
struct BetweenAt<symbol, ssize_t(int, off_t*, int, off_t*, size_t, unsigned)> {
  static ssize_t call(int in, off_t* in_offset, int out, off_t* out_offset, size_t size, unsigned flags) {
    const Calm target(out), source(in);
    return next<symbol, ssize_t>(in, in_offset, out, out_offset, size, flags);
  }
};

/// The descriptor whose bytes a request of ioctl takes; -1: none but its own.
inline int source_of(unsigned long request, const void* argument) {
  if (request == FICLONE) return static_cast<int>(reinterpret_cast<std::intptr_t>(argument));
  return request == FICLONERANGE ? static_cast<int>(static_cast<const file_clone_range*>(argument)->src_fd) : -1;
}

template <Symbol, class>
struct Asking;
template <Symbol symbol>
struct Asking<symbol, int(int, unsigned long, void*)> {
  static int call(int descriptor, unsigned long request, void* argument) {
    if (request == FIDEDUPERANGE && pario_in_vfork_child == 0) stream::flush_all();  // which compares with others
    const Calm own(descriptor), source(source_of(request, argument));
    return next<symbol, int>(descriptor, request, argument);
  }
};

}  // namespace pario::preload::beneath
