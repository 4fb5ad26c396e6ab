// Beneath the wrappers: where files are buffered, what a wrapper calls as the real function is a stand-in of the same signature, which
// lets the buffers (room stream) answer, or makes the file what the real call has to find. Without buffered files there are no stand-ins.
#pragma once

#include <aio.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstdio>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/base.hpp"
#include "hints/hints.hpp"
#include "preload/stand_ins.hpp"
#include "preload/symbols.hpp"
#include "preload/tracer.hpp"
#include "stream/stream.hpp"

namespace pario::preload::beneath {

using stream::Reason;

/// What stands in for a symbol whose real function is `function`: that itself when files are not buffered, or the symbol is none that
/// concerns them.
void* stand_in(Symbol symbol, void* function);

/// Whether files are to be buffered at all; reads the settings at the first call.
bool wanted();
/// What the settings say of a path or a standard stream.
struct Wished {
  hints::StreamHints hints;
  std::string_view specification;  ///< empty: it is not to be buffered
};
Wished wished_of(std::string_view path);
/// For the log, in a row of the file in `layer`.
stream::Origin origin_of(const Wished& wished, trace::Layer layer, std::string_view path, int descriptor);

/// Complaints about the settings, at most one; handlers of signals and of the end. For the constructor.
void begin();
/// At the end of the program: what is written from now on is not buffered.
void end();

inline constexpr int kCapacity = 1 << 20;
extern std::atomic<stream::Handle*> handles[kCapacity];
extern StandIns stand_ins;

/// The handle of a descriptor; null: its file is not buffered, or this is the child of a vfork, to which the tables do not belong.
inline stream::Handle* handle_of(int descriptor) {
  if (static_cast<unsigned>(descriptor) >= kCapacity || pario_in_vfork_child != 0) return nullptr;
  return handles[descriptor].load(std::memory_order_acquire);
}
/// Where the next transfer of a buffered descriptor begins.
std::optional<std::uint64_t> position(int descriptor);

/// Whether a stream of the C library has the file of a descriptor: it reads and writes past the buffers.
bool is_open_as_stream(int descriptor);
/// A descriptor that has just been opened: it is buffered if the settings say so. `since`: ticks, when it began to be opened.
void enter(int descriptor, int flags, std::string_view path, std::uint64_t since);
void share(int original, int copy);
/// Before a descriptor is closed; the errno of bytes that were lost, or 0.
int leave_descriptor(int descriptor);
/// One past the largest descriptor that was ever buffered.
int end_of_descriptors();
/// The file of a name is as its bytes say; null and names of nothing are no files.
void settle(int directory, const char* path);
/// The same of the file that stat(2) has told of; false: it is none that has buffers.
bool settle(const struct stat& told);
/// As the first, and from now on it is not buffered.
void leave(int directory, const char* path, Reason reason);
/// Before another process gets copies of descriptors: files that it could write are left to the kernel.
void leave_inherited();
/// In the child of a vfork, which has descriptors of its own in the memory of its parent: it uses a descriptor, or hands it on to the
/// program that it is about to execute.
void leave_in_vfork_child(int descriptor);
void resume_all();
/// In the child of a fork: nothing is buffered that was open before.
void forget_all();

template <Symbol symbol, class Result, class... Args>
Result next(Args... args) {
  return stand_ins.next<symbol, Result>(args...);
}

/// A result of room stream as the C library gives it.
inline long answer(long result) {
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// ---- treatments

template <Symbol, class>
struct Settled;
/// The first argument is a descriptor; its bytes are there and its offset is the kernel's while the call runs.
template <Symbol symbol, class Result, class... Args>
struct Settled<symbol, Result(int, Args...)> {
  static Result call(int descriptor, Args... args) {
    stream::Handle* handle = handle_of(descriptor);
    if (handle == nullptr) return next<symbol, Result>(descriptor, args...);
    stream::settle(*handle);
    const Result result = next<symbol, Result>(descriptor, args...);
    stream::resume(*handle);
    return result;
  }
};

template <Symbol, class>
struct SettledSecond;
/// The second one is.
template <Symbol symbol, class Result, class First, class... Args>
struct SettledSecond<symbol, Result(First, int, Args...)> {
  static Result call(First first, int descriptor, Args... args) {
    if (stream::Handle* handle = handle_of(descriptor)) stream::settle(*handle);
    return next<symbol, Result>(first, descriptor, args...);
  }
};

template <Symbol, class>
struct Flushed;
/// A call that asks for errors of writes, too.
template <Symbol symbol, class... Args>
struct Flushed<symbol, int(int, Args...)> {
  static int call(int descriptor, Args... args) {
    stream::Handle* handle = handle_of(descriptor);
    const long lost = handle == nullptr ? 0 : stream::flush(*handle);
    const int result = next<symbol, int>(descriptor, args...);
    return lost == 0 ? result : static_cast<int>(answer(lost));
  }
};

/// Why a call ends buffering.
constexpr Reason reason_of(Symbol symbol) {
  switch (symbol) {
    case Symbol::flock:
    case Symbol::lockf:
    case Symbol::lockf64:
      return Reason::locks;
    case Symbol::mmap:
    case Symbol::mmap64:
      return Reason::mapping;
    case Symbol::fdopen:
      return Reason::stdio;
    default:
      return Reason::asynchronous;
  }
}

template <Symbol, class>
struct Left;
/// A call after which the file is the kernel's alone.
template <Symbol symbol, class Result, class... Args>
struct Left<symbol, Result(int, Args...)> {
  static Result call(int descriptor, Args... args) {
    if (stream::Handle* handle = handle_of(descriptor)) stream::leave(*handle, reason_of(symbol));
    return next<symbol, Result>(descriptor, args...);
  }
};

template <Symbol, class>
struct Mapping;
template <Symbol symbol>
struct Mapping<symbol, void*(void*, size_t, int, int, int, off_t)> {
  static void* call(void* hint, size_t size, int protection, int flags, int descriptor, off_t offset) {
    stream::Handle* handle = handle_of(descriptor);
    if (handle != nullptr) stream::leave(*handle, reason_of(symbol));
    void* address = next<symbol, void*>(hint, size, protection, flags, descriptor, offset);
    const bool reads = (protection & PROT_WRITE) == 0 || (flags & MAP_PRIVATE) != 0;
    const auto begin = static_cast<std::uint64_t>(offset);
    if (handle != nullptr && address != MAP_FAILED && reads) stream::read_mapped(*handle, address, {begin, begin + size});
    return address;
  }
};

template <Symbol, class>
struct Unmapping;
template <Symbol symbol>
struct Unmapping<symbol, int(void*, size_t)> {
  static int call(void* address, size_t size) {
    if (pario_in_vfork_child == 0) stream::forget_mapped(address);
    return next<symbol, int>(address, size);
  }
};

template <Symbol, class>
struct LeftRequest;
template <Symbol symbol>
struct LeftRequest<symbol, int(aiocb*)> {
  static int call(aiocb* request) {
    if (stream::Handle* handle = handle_of(request->aio_fildes)) stream::leave(*handle, reason_of(symbol));
    return next<symbol, int>(request);
  }
};

template <Symbol symbol>
struct LeftRequest<symbol, int(int, aiocb*)> {
  static int call(int operation, aiocb* request) {
    if (stream::Handle* handle = handle_of(request->aio_fildes)) stream::leave(*handle, reason_of(symbol));
    return next<symbol, int>(operation, request);
  }
};

template <Symbol, class>
struct Named;
/// The first argument is a path.
template <Symbol symbol, class Result, class... Args>
struct Named<symbol, Result(const char*, Args...)> {
  static Result call(const char* path, Args... args) {
    settle(AT_FDCWD, path);
    return next<symbol, Result>(path, args...);
  }
};

template <Symbol, class>
struct NamedAt;
/// The first two are a directory and a path; an empty path is the descriptor itself.
template <Symbol symbol, class Result, class... Args>
struct NamedAt<symbol, Result(int, const char*, Args...)> {
  static Result call(int directory, const char* path, Args... args) {
    settle(directory, path);
    return next<symbol, Result>(directory, path, args...);
  }
};

template <Symbol, class>
struct Told;
/// The answer itself says what file it is about: of one that has buffers it is asked for again.
template <Symbol symbol, class... Args>
struct Told<symbol, int(Args...)> {
  static int call(Args... args) {
    const int result = next<symbol, int>(args...);
    const auto* told = static_cast<const struct stat*>(std::get<void*>(std::tuple(args...)));
    return result == 0 && settle(*told) ? next<symbol, int>(args...) : result;
  }
};
/// The same of a directory and a path.
template <Symbol symbol, class Function>
using ToldAt = Told<symbol, Function>;

template <Symbol, class>
struct AllSettled;
/// A call that concerns every file.
template <Symbol symbol, class Result, class... Args>
struct AllSettled<symbol, Result(Args...)> {
  static Result call(Args... args) {
    if (pario_in_vfork_child == 0) {
      const base::SavedErrno saved;
      stream::flush_all();
    }
    return next<symbol, Result>(args...);
  }
};

template <Symbol, class>
struct AllLeft;
template <Symbol symbol, class Result, class... Args>
struct AllLeft<symbol, Result(Args...)> {
  static Result call(Args... args) {
    stream::leave_all(reason_of(symbol));
    return next<symbol, Result>(args...);
  }
};

}  // namespace pario::preload::beneath
