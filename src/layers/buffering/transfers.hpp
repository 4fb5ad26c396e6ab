// Treatments of reads, writes and seeks, and of transfers between descriptors.
#pragma once

#include <linux/fs.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include <cstdarg>
#include <cstdio>

#include "layers/buffering/treatments.hpp"

namespace pario::buffering {

/// The memory of a call as pieces: one, or a vector that the kernel would accept.
struct Pieces {
  Pieces(const void* data, std::size_t size) : one{const_cast<void*>(data), size}, all(&one, 1) {}
  Pieces(const iovec* pieces, int count)
      : all(pieces, count < 0 || count > 1024 ? 0 : static_cast<std::size_t>(count)) {}
  iovec one = {};
  std::span<const iovec> all;
};

using Transfer = long (*)(buffers::Handle&, std::span<const iovec>, buffers::StartOffset);

/// Returns kPass if the descriptor is not buffered, or for a vector that the kernel rejects. A
/// cancellation point, as the real calls are.
inline long transfer_pieces(Transfer transfer, int descriptor, const Pieces& pieces,
                            buffers::StartOffset at) {
  buffers::Handle* handle = handle_in_call(descriptor);
  if (handle == nullptr) [[unlikely]]
    stop_buffering_in_vfork_child(descriptor);
  if (handle == nullptr || pieces.all.empty()) return buffers::kPass;
  pthread_testcancel();
  return transfer(*handle, pieces.all, at);
}

template <Transfer transfer>
struct TransferHere {
  static ssize_t call(auto next, int descriptor, auto data, auto size, auto... rest) {
    const long result = transfer_pieces(transfer, descriptor, Pieces(data, size), {});
    return result != buffers::kPass ? set_errno(result) : next(descriptor, data, size, rest...);
  }
};
using Read = TransferHere<buffers::read>;
using Write = TransferHere<buffers::write>;

template <Transfer transfer>
struct TransferAt {
  static ssize_t call(auto next, int descriptor, auto data, auto size, off_t offset, auto... rest) {
    const long result = offset < 0 ? buffers::kPass
                                   : transfer_pieces(transfer, descriptor, Pieces(data, size),
                                                     static_cast<std::uint64_t>(offset));
    return result != buffers::kPass ? set_errno(result)
                                    : next(descriptor, data, size, offset, rest...);
  }
};
using ReadAt = TransferAt<buffers::read>;
using WriteAt = TransferAt<buffers::write>;

/// Formats a text; a positive flag asks for checks of the format. For the C library's own use.
extern "C" int __vsnprintf_chk(char* text, std::size_t room, int flag, std::size_t size,
                               const char* format, va_list values);

/// vdprintf: the text is written as by write(2). The C library writes a long one, after the bytes
/// before it.
struct Print {
  static int call(auto next, int descriptor, const char* format, auto values) {
    return print(next, 0, descriptor, format, values);
  }
  static int call(auto next, int descriptor, int flag, const char* format, auto values) {
    const auto plain = [&](int, const char*, auto) {
      return next(descriptor, flag, format, values);
    };
    return print(plain, flag, descriptor, format, values);
  }

 private:
  static int print(auto next, int flag, int descriptor, const char* format, auto values) {
    constexpr std::size_t kRoom = 4096;
    char text[kRoom];
    if (handle_of(descriptor) == nullptr) return Sync::call(next, descriptor, format, values);
    va_list copy;
    va_copy(copy, values);
    const int size = __vsnprintf_chk(text, kRoom, flag, kRoom, format, copy);
    va_end(copy);
    if (size < 0 || static_cast<std::size_t>(size) >= kRoom)
      return Sync::call(next, descriptor, format, values);
    const Pieces pieces(text, static_cast<std::size_t>(size));
    const long result = transfer_pieces(buffers::write, descriptor, pieces, {});
    return result != buffers::kPass ? static_cast<int>(set_errno(result))
                                    : next(descriptor, format, values);
  }
};

struct Seek {
  static off_t call(auto next, int descriptor, off_t offset, int whence) {
    buffers::Handle* handle = handle_in_call(descriptor);
    const long result = handle == nullptr ? buffers::kPass : buffers::seek(*handle, offset, whence);
    return result != buffers::kPass ? set_errno(result) : next(descriptor, offset, whence);
  }
};

/// Stores the offset and the bytes of a descriptor in the kernel for one call.
class SyncedDescriptor {
 public:
  explicit SyncedDescriptor(int descriptor) : handle_(handle_in_call(descriptor)) {
    if (handle_ != nullptr) buffers::sync_to_kernel(*handle_);
  }
  ~SyncedDescriptor() {
    if (handle_ != nullptr) buffers::reload_offset(*handle_);
  }
  SyncedDescriptor(const SyncedDescriptor&) = delete;
  SyncedDescriptor& operator=(const SyncedDescriptor&) = delete;

 private:
  buffers::Handle* handle_;
};

/// sendfile.
struct Between {
  static ssize_t call(auto next, int out, int in, off_t* offset, size_t size) {
    const SyncedDescriptor target(out), source(in);
    return next(out, in, offset, size);
  }
};

/// copy_file_range and splice.
struct BetweenAt {
  static ssize_t call(auto next, int in, off_t* in_offset, int out, off_t* out_offset, size_t size,
                      unsigned flags) {
    const SyncedDescriptor target(out), source(in);
    return next(in, in_offset, out, out_offset, size, flags);
  }
};

/// The descriptor from which a request of ioctl copies bytes; -1: none.
inline int source_of(unsigned long request, const void* argument) {
  if (request == FICLONE) return static_cast<int>(reinterpret_cast<std::intptr_t>(argument));
  return request == FICLONERANGE
             ? static_cast<int>(static_cast<const file_clone_range*>(argument)->src_fd)
             : -1;
}

struct Ioctl {
  static int call(auto next, int descriptor, unsigned long request, void* argument) {
    // Compares the bytes of several files.
    if (request == FIDEDUPERANGE && pario_in_vfork_child == 0) buffers::flush_all();
    const SyncedDescriptor own(descriptor), source(source_of(request, argument));
    return next(descriptor, request, argument);
  }
};

}  // namespace pario::buffering
