// Room stream: one process, one file: write-behind and read-ahead. Small writes are kept in large buffers that one thread of the process
// writes in the background; small sequential reads are served from buffers that the same thread fills ahead.
//
// There is one set of buffers per file (device and inode), however often and by whatever name the process has it open; a Handle is one
// open description of it, and keeps the offset that the kernel no longer knows. What the program sees of the file is what it would see
// without buffers; other processes see written bytes when a buffer is full, after StreamHints::delay, and at every flush().
//
// The functions take and give what the system calls do: a result, or -errno; kPass means that the caller makes the real call, for which
// the file and the kernel's offset are then as they have to be. All are thread-safe, and may be called in a signal handler that has
// interrupted one of them: a write is then taken up when the interrupted call ends. Nothing here uses the heap.
#pragma once

#include <sys/stat.h>
#include <sys/uio.h>

#include <climits>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/base.hpp"
#include "hints/hints.hpp"
#include "layout/layout.hpp"
#include "trace/trace.hpp"

namespace pario::stream {

/// The system calls beneath the buffers, each a result or -errno. Tests put others in their place, before the first file is opened.
struct Kernel {
  long (*pwritev)(int descriptor, const iovec* pieces, int count, std::uint64_t offset);
  long (*write)(int descriptor, const void* data, std::size_t size);
  long (*preadv)(int descriptor, const iovec* pieces, int count, std::uint64_t offset);
  long (*seek)(int descriptor, std::int64_t offset, int whence);
  int (*status)(int descriptor, struct stat& status);
  layout::Kind (*kind)(int descriptor);
  /// Begins to store what was written of a range.
  long (*store)(int descriptor, std::uint64_t offset, std::uint64_t bytes);
};
extern Kernel kernel;

inline constexpr long kPass = LONG_MIN;

/// A sentence for the user: on stderr, and in the log where there is one.
void tell(std::string_view sentence);

/// What the hints leave open, as that kind of file system likes it (policy.def).
void fill_in(hints::StreamHints& hints, layout::Kind kind);

/// Where buffers that survive their process are taken (hint `survive`): a name of an abstract socket.
void set_keeper(std::string_view name);

/// Bytes of all buffers of the process; what does not fit is not buffered.
void set_memory_limit(std::uint64_t bytes);

/// Pages within that limit for buffers of others; null: there are none.
std::byte* take_memory(std::uint64_t bytes);
void give_back_memory(std::byte* memory, std::uint64_t bytes);
/// Has the writer call `look` every half second.
void watch(void (*look)());

/// Why a file that was to be buffered is not, or is no longer.
enum class Reason : std::uint8_t {
#define PARIO_STREAM_REASON(name, text) name,
#include "stream/reasons.def"
#undef PARIO_STREAM_REASON
};

/// Where a wish to buffer a file comes from, for the log.
struct Origin {
  std::string_view specification = {};  ///< of hints::stream_specification_of; must stay
  trace::Record* record = nullptr;      ///< of the file; null: it is not traced
  std::uint64_t since = 0;              ///< ticks, when it began to be opened; 0: now
};

struct Handle;

/// An open description of a regular file that has just been opened as `descriptor`, by `path`; null: it is not buffered (no such file, no
/// memory, O_DIRECT, O_SYNC and the like, or the file is shared in ways that only the kernel can serve). The hints are those of the first
/// who opens the file.
Handle* open(int descriptor, int flags, const hints::StreamHints& hints, std::string_view path, const Origin& origin = {});
/// Notes in the log what became of a wish that did not come to open(): of a file that is not buffered, or of the buffer of a stdio stream
/// (Reason::none).
void note(const Origin& origin, const hints::StreamHints& hints, Reason reason);
/// One descriptor more stands for it.
void share(Handle& handle);
/// Whether a descriptor is one of its file's: in the child of a vfork it may be another's, or closed.
bool stands_for(const Handle& handle, int descriptor);
/// The descriptor is about to be closed: what is buffered is written. `other`: one that still stands for the handle; negative: it was the
/// last, and the handle is gone. 0, or the -errno of a write that failed since somebody was told.
long close(Handle& handle, int other);

/// What becomes of the bytes of a handle that rests: they are written, they wait as before, or they are handed over to be written, because
/// the handle is to be closed soon.
enum class Rest : std::uint8_t { written, waiting, leaving };
/// The program has closed the only descriptor of the handle, which stays open and stands at its beginning as if it had just been opened.
/// False: it has to be closed, because the file is the kernel's, a write failed, or nothing is left to be written (Rest::leaving).
bool rest(Handle& handle, Rest how);

/// Where a transfer begins: at an offset, or, as it comes, at the handle's. In one word, because processors wait for a flag that is stored
/// as a byte and passed on as a word.
class At {
 public:
  At() = default;
  At(std::uint64_t offset) : offset_(offset) {}
  explicit operator bool() const { return offset_ != kHandles; }
  std::uint64_t value_or(std::uint64_t other) const { return *this ? offset_ : other; }

 private:
  static constexpr std::uint64_t kHandles = ~std::uint64_t{0};
  std::uint64_t offset_ = kHandles;
};

/// At the handle's offset, it moves.
long write(Handle& handle, std::span<const iovec> pieces, At at);
long read(Handle& handle, std::span<const iovec> pieces, At at);
long seek(Handle& handle, std::int64_t offset, int whence);
/// Where the next read or write begins, as far as this process knows.
std::uint64_t position(Handle& handle);

/// Writes what is buffered: 0, or the -errno of a write that failed since somebody was told.
long flush(Handle& handle);
/// The same of a file by whatever handles it is open; the error stays for those. False: it is no file that has buffers.
bool flush(dev_t device, ino_t inode);
/// No file has buffers at this moment.
bool idle();
/// Everything, before the process ends or becomes another program. The kernel's offsets are right afterwards.
void flush_all();
/// Flushes, and the kernel has the handle's offset, for a call that moves it: pair with resume().
void settle(Handle& handle);
void resume(Handle& handle);
/// From now on the file is the kernel's alone, until all have closed it: locks, mappings, stdio, or other processes are at work on it.
void leave(Handle& handle, Reason reason);
void leave(dev_t device, ino_t inode, Reason reason);
void leave_all(Reason reason);
/// A range of the file has been mapped for reading: it is read ahead if its hints say so.
void read_mapped(Handle& handle, const void* address, base::Extent range);
void forget_mapped(const void* address);
/// At the end of the program: all is left to the kernel, and what is to be said of files that are still open is said.
void end();

/// Before this process becomes another program, or another gets its descriptors: in the child of a fork these may be copies of its
/// parent's, which would not hear of them any more. before_spawn: any descriptor may be handed on.
void before_exec();
void before_spawn();
/// Around a fork: all is left to the kernel before, until nobody else has copies of the descriptors, and the child begins without any
/// handle; what its parent had open is the kernel's there.
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

/// In a handler of a signal that ends the process: writes what can be written, without a lock.
void rescue();

/// What was asked of a file and what reached the kernel.
struct Statistics {
  struct Calls {
    std::uint64_t calls = 0, bytes = 0, ticks = 0;
  };
  Calls open, read, write, close, system_read, system_write;  ///< close: with the writing of what was buffered
  std::uint64_t buffers = 0;                                  ///< that were filled
  std::uint64_t prefetches = 0, preflushes = 0;               ///< buffers read and written in the background
  std::uint64_t wasted = 0;                                   ///< bytes that were read ahead and never asked for
};
Statistics statistics(Handle& handle);

}  // namespace pario::stream
