// Module buffering: the layer that lets module buffers serve the program's calls on buffered files
// (hint tables `streams` and `iobuf_params`). It maps descriptors to handles of module buffers.
// Before a call that needs the file itself, all bytes are written and the kernel's offset is up to
// date. stdio streams keep their own buffers, which this layer replaces by larger ones.
//
// Unless stated otherwise, functions ignore descriptors and streams that are not buffered, and do
// nothing in the child of a vfork.
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/base/base.hpp"
#include "core/hints/hints.hpp"
#include "layers/buffers/buffers.hpp"
#include "layers/chain/chain.hpp"

namespace pario::buffering {

using buffers::Reason;
using symbols::Symbol;

/// True if a setting requests buffers in this program. Reads the settings at the first call.
bool is_active();
/// The treatment of a function in column `buffering` of treatments.def; null: none.
void* treatment_of(Symbol symbol);

/// Reports errors in the settings, installs handlers of deadly signals, and sets the buffers of the
/// standard streams. For the constructor of the library.
void start();
/// Ends buffering at the end of the program: later writes are not delayed.
void stop();

/// Called around a fork, by handlers of pthread_atfork. Parent and child share offsets, so that
/// only the kernel can keep them.
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

/// Converts a result of module buffers to that of the C library: -errno becomes -1, with errno set.
inline long set_errno(long result) {
  if (result >= 0) return result;
  errno = static_cast<int>(-result);
  return -1;
}

// ---- settings

/// The setting for a path or a standard stream.
struct Setting {
  hints::StreamHints hints;
  std::string_view specification;  ///< empty: not to be buffered
};
Setting find_setting(std::string_view path);

// ---- descriptors

inline constexpr int kCapacity = 1 << 20;
extern std::atomic<buffers::Handle*> handle_table[kCapacity];

/// The handle of a descriptor; null: its file is not buffered, or this is the child of a vfork,
/// whose descriptors are not those of the table.
inline buffers::Handle* handle_of(int descriptor) {
  if (static_cast<unsigned>(descriptor) >= kCapacity || pario_in_vfork_child != 0) return nullptr;
  return handle_table[descriptor].load(std::memory_order_acquire);
}

/// The offset of the next transfer of a buffered descriptor.
std::optional<std::uint64_t> position(int descriptor);

/// Stops buffering the files that another program could write, before it inherits descriptors.
/// Works in the child of a vfork, too.
void stop_buffering_inherited();

/// Calls `visit` with each descriptor that a message sends.
template <class Visit>
void for_each_sent_descriptor(const msghdr& message, Visit visit) {
  auto* header = const_cast<msghdr*>(&message);
  for (cmsghdr* part = CMSG_FIRSTHDR(header); part != nullptr; part = CMSG_NXTHDR(header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; CMSG_LEN(sizeof(int) * (i + 1)) <= part->cmsg_len; ++i) {
      int descriptor;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof descriptor, sizeof descriptor);
      visit(descriptor);
    }
  }
}
template <class Visit>
void for_each_sent_descriptor(const mmsghdr* messages, unsigned count, Visit visit) {
  for (unsigned i = 0; i < count; ++i) for_each_sent_descriptor(messages[i].msg_hdr, visit);
}
template <class Visit>
void for_each_sent_descriptor(const msghdr* message, int, Visit visit) {
  for_each_sent_descriptor(*message, visit);
}

// ---- stdio streams

/// The return address of the last call of fopen. The C++ library opens a FILE for its streams but
/// reads and writes the descriptor, which is then buffered instead of the FILE. Set by the wrapper.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local const void* fopen_caller;

/// True if the stream has a buffer of this layer.
bool has_buffer(const std::FILE* stream);

/// Writes the pending bytes of a stream without a request of the program. False, with errno: they
/// are lost, and a message says so.
bool flush_stream(std::FILE* stream);

// The program sees the bytes that its own buffers would let it see: of a stream that it made
// unbuffered or line-buffered all bytes, of another one those that fill its buffer.

/// Open streams with a buffer of this layer.
extern std::atomic<std::uint32_t> stream_buffers;

/// Before a call on a descriptor: writes the bytes of the streams on it.
void write_streams_on(int descriptor);
/// Before a call that looks at a file by name: writes the bytes of its streams. False: there are
/// none.
bool write_streams_of(const struct stat& file);
/// Before a call that lets other processes look at any file, such as a lock or a new process.
void write_all_streams();
/// Gives streams of a file back the buffers that the program set: it uses the file in another way,
/// too.
void restore_streams_of(const struct stat& file);
void restore_streams_on(int descriptor);

/// The handle of a descriptor that the program uses in a call, as handle_of.
inline buffers::Handle* handle_in_call(int descriptor) {
  buffers::Handle* handle = handle_of(descriptor);
  if (handle == nullptr && stream_buffers.load(std::memory_order_relaxed) != 0)
    write_streams_on(descriptor);
  return handle;
}

}  // namespace pario::buffering
