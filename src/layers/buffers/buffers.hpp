// Module buffers: write-behind and read-ahead for the files of one process.
//
// Write-behind keeps small writes in large buffers, which a background thread writes. Read-ahead
// serves small sequential reads from buffers that background threads fill.
//
// A file (device and inode) has one set of buffers, however often and by however many names the
// process has it open. A Handle is one open description of the file; it keeps the offset that the
// kernel no longer has. The program sees the contents that it would see without buffers. Other
// processes see written bytes when a buffer is full, after StreamHints::delay seconds, and at each
// flush.
//
// Contract, unless a function says otherwise:
// - Results are those of the system call: a value >= 0, or -errno. kPass means that the caller has
//   to make the real call; the bytes of the file and the kernel's offset are ready for it.
// - The error of a write in the background is a deferred error: for each handle of the file, its
//   next write(), flush() or last close() returns it, once; close() not for a handle that only
//   reads. stderr and the log name the lost bytes in any case.
// - All functions are thread-safe, and use neither heap nor stdio nor exceptions.
// - Functions of a Handle may be called in signal handlers. If the handler interrupts one of them
//   on the same file, write() keeps the bytes until the interrupted call ends (-EAGAIN: more than
//   4 KiB), read() and seek() return -EINTR, close() writes the bytes but keeps the handle, and the
//   others do nothing.
// - open(), add_reference(), close(), keep_handle(), flush_file(), stop_buffering() of a device and
//   inode, and the functions around a fork lock the registry, and block the signals of the thread
//   meanwhile.
// - Sizes and offsets are bytes; delays are seconds; times are ticks (trace::ticks()).
#pragma once

#include <sys/stat.h>
#include <sys/uio.h>

#include <climits>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/base.hpp"
#include "core/hints/hints.hpp"
#include "core/layout/layout.hpp"
#include "core/trace/trace.hpp"

namespace pario::buffers {

/// The result of a call that the caller has to make itself.
inline constexpr long kPass = LONG_MIN;

// ---- settings of the process

/// Prints a sentence for the user: in the log if the process is traced, otherwise on stderr.
void print_message(std::string_view sentence);

/// The kind of file system on which a descriptor is open.
layout::Kind file_system_of(int descriptor);

/// Fills the hints that the user has not set with the defaults of the kind of file system
/// (policy.def).
void fill_unset_hints(hints::StreamHints& hints, layout::Kind kind);

/// Sets the abstract socket of the keeper, which holds buffers that survive their process (hint
/// `survive`).
void set_keeper(std::string_view name);

/// Sets the limit of the bytes of all buffers of the process. A file that finds no memory is not
/// buffered.
void set_memory_limit(std::uint64_t bytes);

/// Allocates pages within that limit for the buffers of a caller; null if the limit is reached.
std::byte* allocate_memory(std::uint64_t bytes);
/// Releases memory of allocate_memory(); `bytes` as allocated.
void release_memory(std::byte* memory, std::uint64_t bytes);

/// Makes the background thread call `task` every half second. There is one task; a second call
/// replaces the first one's.
void set_periodic_task(void (*task)());

// ---- opening and closing

/// The reason why a file that was to be buffered is not, or no longer, buffered.
enum class Reason : std::uint8_t {
#define PARIO_STREAM_REASON(name, text) name,
#include "layers/buffers/reasons.def"
#undef PARIO_STREAM_REASON
};

/// The setting that requests the buffers of a file, for the log.
struct Origin {
  std::string_view specification = {};  ///< of hints::stream_specification_of; must stay valid
  trace::Record* record = nullptr;      ///< row of the file in the log; null: it is not traced
  std::uint64_t since = 0;              ///< ticks at the beginning of the open call; 0: now
};

/// True if `fits` is true for an open descriptor of this process, or if they are unknown.
bool has_descriptor(bool (*fits)(int descriptor, const void* argument), const void* argument);
/// True if this process has mapped a file with this inode, of any device, or if that is unknown.
bool is_mapped(ino_t inode);

struct Handle;

/// Registers an open description that has just been opened as `descriptor` by `path`. Returns null
/// if the file is not buffered: no regular file, no memory, O_DIRECT, O_SYNC and similar flags, or
/// processes share the file in ways that only the kernel can serve. If the file is open already,
/// its first hints stay.
Handle* open(int descriptor, int flags, const hints::StreamHints& hints, std::string_view path,
             const Origin& origin = {});

/// Logs the outcome of a setting for a file that was not passed to open(), or for the buffer of a
/// stdio stream (Reason::none: the buffer is in use).
void log_outcome(const Origin& origin, const hints::StreamHints& hints, Reason reason);

/// Counts one more descriptor of the handle's open description.
void add_reference(Handle& handle);

/// The device and the inode of the handle's file; the rest is zero.
struct stat identity_of(const Handle& handle);

/// True if the descriptor is open on the handle's file. In the child of a vfork it may be closed,
/// or open on another file.
bool is_descriptor_of(const Handle& handle, int descriptor);

/// Writes the dirty bytes before one of the handle's descriptors is closed. `other` is a remaining
/// descriptor of the handle; if it is negative, the handle ends. Returns 0 or a deferred error.
long close(Handle& handle, int other);

/// The treatment of the dirty bytes of a kept handle: written now; kept as in an open file; or
/// enqueued for the background thread, because the handle will be closed soon.
enum class DirtyBytes : std::uint8_t { flush, keep, enqueue };

/// Keeps a handle whose only descriptor the program has closed, and rewinds it for the next
/// opening. False if the caller has to close it: the file is no longer buffered, a write has
/// failed, the handle has other descriptors, or there are no dirty bytes (DirtyBytes::enqueue).
bool keep_handle(Handle& handle, DirtyBytes dirty);

// ---- transfers

/// The start of a transfer: a given offset or, by default, the handle's, which then moves. One
/// word, because a flag that is stored as a byte and loaded as part of a word stalls the processor.
class StartOffset {
 public:
  StartOffset() = default;
  StartOffset(std::uint64_t offset) : offset_(offset) {}
  explicit operator bool() const { return offset_ != kOfHandle; }
  std::uint64_t value_or(std::uint64_t other) const { return *this ? offset_ : other; }

 private:
  static constexpr std::uint64_t kOfHandle = ~std::uint64_t{0};
  std::uint64_t offset_ = kOfHandle;
};

/// As pwritev(2), or writev(2) at the handle's offset; `pieces` is not empty.
long write(Handle& handle, std::span<const iovec> pieces, StartOffset at);
/// As preadv(2), or readv(2) at the handle's offset; `pieces` is not empty.
long read(Handle& handle, std::span<const iovec> pieces, StartOffset at);
/// As lseek(2).
long seek(Handle& handle, std::int64_t offset, int whence);
/// The offset of the next read or write, as far as this process knows.
std::uint64_t position(Handle& handle);

// ---- flushing, and calls of the program that bypass the buffers

/// Writes the dirty bytes of the file. Returns 0 or a deferred error.
long flush(Handle& handle);
/// Writes the dirty bytes of a file and stores its offsets in the kernel; a deferred error stays
/// for the file's handles. False if the file has no buffers.
bool flush_file(dev_t device, ino_t inode);
/// Does the same for all files.
void flush_all();
/// Does the same before the process ends or executes another program. In a signal handler that has
/// interrupted a call of this module it takes no lock, as flush_in_signal_handler().
void flush_at_end();
/// True if no file has buffers at this moment.
bool is_idle();

/// Writes the dirty bytes and stores the offsets of the file's handles in the kernel, before a call
/// that uses them; pair with reload_offset().
void sync_to_kernel(Handle& handle);
/// Reads the handle's offset from the kernel after such a call.
void reload_offset(Handle& handle);

/// Stops buffering the file until all handles are closed, because locks, mappings, stdio or other
/// processes use it.
void stop_buffering(Handle& handle, Reason reason);
void stop_buffering(dev_t device, ino_t inode, Reason reason);
void stop_all_buffering(Reason reason);

/// Reads a range of the file ahead that has just been mapped at `address` for reading, if its hints
/// ask for it (hint `map_ahead`).
void start_map_ahead(Handle& handle, const void* address, base::Extent range);
/// Stops reading ahead for the mapping at `address`.
void stop_map_ahead(const void* address);

// ---- events of the process

/// Ends buffering of all files at the end of the program, and reports files that are still open.
void end_buffering();

/// Called before the process executes another program: descriptors copied from its parent, which
/// stay open, are then beyond the parent's knowledge.
void before_exec();
/// Called before the process hands any of its descriptors to another program.
void before_spawn();
/// Called around a fork. before_fork() stops buffering all files until no other process has copies
/// of their descriptors. The child starts without handles, and never buffers the parent's files.
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

/// Writes the dirty bytes that can be written without a lock, in a handler of a signal that ends
/// the process.
void flush_in_signal_handler();

// ---- statistics

/// The requests of the program for a file, and the system calls that served them.
struct Statistics {
  struct Calls {
    std::uint64_t calls = 0, bytes = 0, ticks = 0;
  };
  Calls open, read, write, close;                ///< close includes the write of dirty bytes
  Calls system_read, system_write;               ///< system calls
  std::uint64_t buffers = 0;                     ///< buffers filled
  std::uint64_t prefetches = 0, preflushes = 0;  ///< buffers read and written in the background
  std::uint64_t wasted = 0;                      ///< bytes read ahead that no read asked for
};
Statistics statistics(Handle& handle);

}  // namespace pario::buffers
