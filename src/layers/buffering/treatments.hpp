// Treatments of calls that bypass the buffers: the file has all bytes, or is no longer buffered.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <tuple>

#include "layers/buffering/descriptors.hpp"

namespace pario::buffering {

using chain::None;

/// A call on a descriptor (first argument). Dirty bytes are written before it, and the offset is
/// the kernel's while it runs.
template <Symbol, class>
struct Sync;
template <Symbol symbol, class Result, class... Args>
struct Sync<symbol, Result(int, Args...)> {
  static Result call(int descriptor, Args... args) {
    buffers::Handle* handle = handle_of(descriptor);
    if (handle == nullptr) return next<symbol, Result>(descriptor, args...);
    buffers::sync_to_kernel(*handle);
    const Result result = next<symbol, Result>(descriptor, args...);
    buffers::reload_offset(*handle);
    return result;
  }
};

/// A call on a descriptor (second argument) that does not change the offset.
template <Symbol, class>
struct SyncSecond;
template <Symbol symbol, class Result, class First, class... Args>
struct SyncSecond<symbol, Result(First, int, Args...)> {
  static Result call(First first, int descriptor, Args... args) {
    if (buffers::Handle* handle = handle_of(descriptor)) buffers::sync_to_kernel(*handle);
    return next<symbol, Result>(first, descriptor, args...);
  }
};

/// A call on a descriptor that also returns errors of writes: the deferred error, if there is one.
template <Symbol, class>
struct Flush;
template <Symbol symbol, class... Args>
struct Flush<symbol, int(int, Args...)> {
  static int call(int descriptor, Args... args) {
    buffers::Handle* handle = handle_of(descriptor);
    const long error = handle == nullptr ? 0 : buffers::flush(*handle);
    const int result = next<symbol, int>(descriptor, args...);
    return error == 0 ? result : static_cast<int>(set_errno(error));
  }
};

/// The reason for which a call ends buffering.
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

inline void stop_buffering(int descriptor, Reason reason) {
  if (buffers::Handle* handle = handle_of(descriptor)) buffers::stop_buffering(*handle, reason);
}

/// A call on a descriptor that ends buffering.
template <Symbol, class>
struct Stop;
template <Symbol symbol, class Result, class... Args>
struct Stop<symbol, Result(int, Args...)> {
  static Result call(int descriptor, Args... args) {
    stop_buffering(descriptor, reason_of(symbol));
    return next<symbol, Result>(descriptor, args...);
  }
};

/// mmap: ends buffering, and reads mappings for reading ahead (hint `map_ahead`).
template <Symbol, class>
struct Map;
template <Symbol symbol>
struct Map<symbol, void*(void*, size_t, int, int, int, off_t)> {
  static void* call(void* hint, size_t size, int protection, int flags, int descriptor,
                    off_t offset) {
    buffers::Handle* handle = handle_of(descriptor);
    if (handle != nullptr) buffers::stop_buffering(*handle, reason_of(symbol));
    void* address = next<symbol, void*>(hint, size, protection, flags, descriptor, offset);
    const bool reads = (protection & PROT_WRITE) == 0 || (flags & MAP_PRIVATE) != 0;
    const auto begin = static_cast<std::uint64_t>(offset);
    if (handle != nullptr && address != MAP_FAILED && reads)
      buffers::start_map_ahead(*handle, address, {begin, begin + size});
    return address;
  }
};

template <Symbol, class>
struct Unmap;
template <Symbol symbol>
struct Unmap<symbol, int(void*, size_t)> {
  static int call(void* address, size_t size) {
    if (pario_in_vfork_child == 0) buffers::stop_map_ahead(address);
    return next<symbol, int>(address, size);
  }
};

/// Asynchronous requests end buffering of their file.
template <Symbol, class>
struct StopRequest;
template <Symbol symbol>
struct StopRequest<symbol, int(aiocb*)> {
  static int call(aiocb* request) {
    stop_buffering(request->aio_fildes, reason_of(symbol));
    return next<symbol, int>(request);
  }
};
template <Symbol symbol>
struct StopRequest<symbol, int(int, aiocb*)> {
  static int call(int operation, aiocb* request) {
    stop_buffering(request->aio_fildes, reason_of(symbol));
    return next<symbol, int>(operation, request);
  }
};

/// A call that ends buffering of all files, such as a list of asynchronous requests.
template <Symbol, class>
struct StopAll;
template <Symbol symbol, class Result, class... Args>
struct StopAll<symbol, Result(Args...)> {
  static Result call(Args... args) {
    buffers::stop_all_buffering(reason_of(symbol));
    return next<symbol, Result>(args...);
  }
};

/// A call on a path; an empty path behind a directory is the descriptor itself.
struct FlushNamed {
  static auto call(auto next, int directory, const char* path, auto... args) {
    flush_path(directory, path);
    return next(directory, path, args...);
  }
};
template <Symbol symbol, class Function>
using FlushPath = chain::OnPath<chain::LayerId::buffering, symbol, FlushNamed, Function>;

/// The stat functions by name. Their result identifies the file: if it has buffers, they are
/// flushed and the call is repeated.
template <Symbol, class>
struct Stat;
template <Symbol symbol, class... Args>
struct Stat<symbol, int(Args...)> {
  static int call(Args... args) {
    const int result = next<symbol, int>(args...);
    const auto* status = static_cast<const struct stat*>(std::get<void*>(std::tuple(args...)));
    return result == 0 && flush_file(*status) ? next<symbol, int>(args...) : result;
  }
};

/// A call that concerns every file, such as sync and exit.
template <Symbol, class>
struct FlushAll;
template <Symbol symbol, class Result, class... Args>
struct FlushAll<symbol, Result(Args...)> {
  static Result call(Args... args) {
    if (pario_in_vfork_child == 0) {
      const base::SavedErrno saved;
      buffers::flush_all();
    }
    return next<symbol, Result>(args...);
  }
};

}  // namespace pario::buffering
