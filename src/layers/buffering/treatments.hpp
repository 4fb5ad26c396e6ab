// Treatments of calls that bypass the buffers: the file has all bytes, or is no longer buffered.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/types.h>

#include <tuple>

#include "layers/buffering/descriptors.hpp"
#include "layers/buffering/streams.hpp"

namespace pario::buffering {

using chain::None;

/// A call on a descriptor (first argument). Dirty bytes are written before it, and the offset is
/// the kernel's while it runs.
struct Sync {
  static auto call(auto next, int descriptor, auto... args) {
    buffers::Handle* handle = handle_in_call(descriptor);
    if (handle == nullptr) return next(descriptor, args...);
    buffers::sync_to_kernel(*handle);
    const auto result = next(descriptor, args...);
    buffers::reload_offset(*handle);
    return result;
  }
};

/// A call on a descriptor (second argument) that does not change the offset.
struct SyncSecond {
  static auto call(auto next, auto first, int descriptor, auto... args) {
    if (buffers::Handle* handle = handle_in_call(descriptor)) buffers::sync_to_kernel(*handle);
    return next(first, descriptor, args...);
  }
};

/// A call on a descriptor that also returns errors of writes: the deferred error, if there is one.
struct Flush {
  static int call(auto next, int descriptor, auto... args) {
    buffers::Handle* handle = handle_in_call(descriptor);
    const long error = handle == nullptr ? 0 : buffers::flush(*handle);
    const int result = next(descriptor, args...);
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
  if (buffers::Handle* handle = handle_in_call(descriptor))
    buffers::stop_buffering(*handle, reason);
}

/// A call on a descriptor that ends buffering.
struct Stop {
  static auto call(auto next, int descriptor, auto... args) {
    stop_buffering(descriptor, reason_of(next.kSymbol));
    const AroundLock around(reason_of(next.kSymbol) == Reason::locks);
    return next(descriptor, args...);
  }
};

/// mmap: ends buffering, and reads mappings for reading ahead (hint `map_ahead`).
struct Map {
  static void* call(auto next, void* hint, size_t size, int protection, int flags, int descriptor,
                    off_t offset) {
    buffers::Handle* handle = handle_in_call(descriptor);
    if (handle != nullptr) buffers::stop_buffering(*handle, reason_of(next.kSymbol));
    void* address = next(hint, size, protection, flags, descriptor, offset);
    if (handle != nullptr && address != MAP_FAILED) note_unbuffered(descriptor);
    const bool reads = (protection & PROT_WRITE) == 0 || (flags & MAP_PRIVATE) != 0;
    const auto begin = static_cast<std::uint64_t>(offset);
    if (handle != nullptr && address != MAP_FAILED && reads)
      buffers::start_map_ahead(*handle, address, {begin, begin + size});
    return address;
  }
};

struct Unmap {
  static int call(auto next, void* address, size_t size) {
    if (pario_in_vfork_child == 0) buffers::stop_map_ahead(address);
    return next(address, size);
  }
};

/// Asynchronous requests end buffering of their file.
struct StopRequest {
  static int call(auto next, aiocb* request) {
    stop_buffering(request->aio_fildes, reason_of(next.kSymbol));
    return next(request);
  }
  static int call(auto next, int operation, aiocb* request) {
    stop_buffering(request->aio_fildes, reason_of(next.kSymbol));
    return next(operation, request);
  }
};

/// A call that ends buffering of all files, such as a list of asynchronous requests.
struct StopAll {
  static auto call(auto next, auto... args) {
    buffers::stop_all_buffering(reason_of(next.kSymbol));
    return next(args...);
  }
};

/// A call on a path; an empty path behind a directory is the descriptor itself.
struct FlushPath : chain::OnPath {
  static auto call(auto next, int directory, const char* path, auto... args) {
    flush_path(directory, path);
    return next(directory, path, args...);
  }
};

/// The stat functions by name. Their result identifies the file: if it has buffers, they are
/// flushed and the call is repeated.
struct Stat {
  static int call(auto next, auto... args) {
    const int result = next(args...);
    const auto* status = static_cast<const struct stat*>(std::get<void*>(std::tuple(args...)));
    return result == 0 && flush_file(*status) ? next(args...) : result;
  }
};

/// A call that concerns every file.
struct FlushAll {
  static auto call(auto next, auto... args) {
    if (pario_in_vfork_child == 0) {
      const base::SavedErrno saved;
      write_all_streams();
      buffers::flush_all();
    }
    return next(args...);
  }
};

/// A call that ends the process at once; programs make it in signal handlers, too.
struct End {
  static void call(auto next, auto... args) {
    if (pario_in_vfork_child == 0) {
      buffers::flush_at_end();
      write_pending_bytes();
    }
    next(args...);
  }
};

}  // namespace pario::buffering
