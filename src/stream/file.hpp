// The buffers of one file, and the open descriptions that share them.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "stream/audit.hpp"
#include "stream/buffer.hpp"
#include "stream/condition.hpp"
#include "stream/once.hpp"
#include "stream/stream.hpp"
#include "stream/survive.hpp"
#include "stream/whole.hpp"
#include "trace/trace.hpp"

namespace pario::stream {

struct Handle {
  File* file = nullptr;  ///< null: not in use
  Handle* next = nullptr;
  std::uint64_t offset = 0;  ///< of an appending handle: where its next byte is supposed to come
  int descriptor = -1;
  std::uint32_t references = 0;
  bool reads = false, writes = false, appends = false;
  std::uint64_t next_read = 0;         ///< where a sequential reader would go on
  std::uint32_t sequential_reads = 0;  ///< in succession
  bool busy = false;                   ///< a read at the offset is on its way
  bool rewound = false;                ///< appends, and is to stand at its beginning, whatever the kernel's offset is
};

/// What came of writing a buffer.
struct Written {
  Statistics::Calls calls = {};
  long error = 0;  ///< -errno
};

inline void count_call(Statistics::Calls& calls, std::uint64_t bytes, std::uint64_t start) {
  ++calls.calls;
  calls.bytes += bytes;
  calls.ticks += trace::ticks() - start;
}

inline std::uint64_t bytes_of(std::span<const iovec> pieces) {
  std::uint64_t sum = 0;
  for (const iovec& piece : pieces) sum += piece.iov_len;
  return sum;
}

/// Where the kernel lets files end (RLIMIT_FSIZE).
std::uint64_t file_size_limit();

class File {
 public:
  /// Holds the file for one call. A signal handler that interrupts the holder does not get it: `held()` is false.
  class Lock {
   public:
    explicit Lock(File& file);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    bool held() const { return held_; }

   private:
    friend class File;
    File& file_;
    File* outer_;
    bool held_;
    std::unique_lock<std::mutex> lock_;
  };

  // Who calls these holds the registry (registry.hpp).
  bool begin(int descriptor, const struct stat& status, const hints::StreamHints& hints, std::string_view path, const Origin& origin);
  /// Whether reads are served from a copy that the node's processes share.
  bool is_read_once() const { return once_ != nullptr; }
  bool is(dev_t device, ino_t inode) const { return used() && device_ == device && inode_ == inode; }
  dev_t device() const { return device_; }
  ino_t inode() const { return inode_; }
  bool is_unused() const { return handles_ == nullptr; }
  bool used() const { return used_.load(std::memory_order_acquire); }
  /// `since`: ticks, when it began to be opened.
  void add(Handle& handle, std::uint64_t since);
  /// True: it was the last.
  bool remove(Handle& handle);
  void end();
  /// In the child of a fork: nobody here has it open so far, but copies of descriptors that are not known here: it is the kernel's for
  /// good.
  void inherit();

  // Each holds the lock.
  long write(Handle& handle, std::span<const iovec> pieces, At at);
  long read(Handle& handle, std::span<const iovec> pieces, At at);
  long seek(Handle& handle, std::int64_t offset, int whence);
  long flush();
  /// Nothing is buffered, and the kernel has the offsets.
  void settle();
  void resume(Handle& handle);
  /// `for_now`: while children have copies of its descriptors.
  void leave(Reason reason, bool for_now = false);
  bool paused() const { return paused_; }
  /// A child has copies of its descriptors, for all that is known.
  void note_fork() { forked_ = true; }
  bool forked() const { return forked_; }
  bool inherited() const { return used() && inherited_; }
  Reason reason() const { return reason_; }
  bool rest(Handle& handle, Rest how);
  std::uint64_t position(const Handle& handle);
  /// One of its descriptors is about to be closed: its bytes go through `other` from now on.
  long change_descriptor(Handle& handle, int other);
  /// Adds what has been counted since the last time to the row of the file.
  void publish();

  // The writer's.
  /// Writes a queued buffer, or reads one ahead.
  void finish(Buffer& buffer);
  /// Hands buffers over whose bytes have waited since before `limit`, if nobody holds the file; when the next ones are due (ns), or 0.
  void hand_over_older_than(std::uint64_t limit);
  /// Writes what can be written, without a lock.
  void rescue();

  const hints::StreamHints& hints() const { return hints_; }
  std::string_view path() const { return {path_, path_size_}; }
  Statistics statistics();
  /// Whether its figures are wanted on stderr, and have not been asked for.
  bool take_verbose() { return std::exchange(hints_.verbose, false); }

 private:
  static constexpr std::uint32_t kMostBuffers = 64;
  static constexpr std::size_t kLateBytes = 4096;

  long write_locked(Lock& lock, Handle& handle, std::span<const iovec> pieces, At at);
  bool is_quick(const Handle& handle, std::span<const iovec> pieces, At at) const;
  long write_through(Lock& lock, Handle& handle, std::span<const iovec> pieces, At at);
  long append(Lock& lock, Handle& handle, std::span<const iovec> pieces, std::uint64_t bytes);
  void put(Lock& lock, Handle& handle, std::uint64_t offset, std::span<const std::byte> data);
  bool fits(std::uint64_t offset, std::uint64_t bytes) const;
  long read_locked(Lock& lock, Handle& handle, std::span<const iovec> pieces, std::uint64_t offset);
  /// The copy that reads are served from; null: there is none, or it is not to be used now.
  Whole* right_copy(const Handle& handle);
  std::optional<std::int64_t> origin_of(const Handle& handle, int whence);
  bool is_served_from_buffer(const iovec& piece, std::uint64_t offset) const;

  bool take_buffers(int descriptor);
  void give_back_buffers();
  bool begins_again();
  bool take_offset(Handle& handle) const;
  Buffer& window(Lock& lock, Handle& handle, std::uint64_t begin);
  Buffer* window_now(Handle& handle, std::uint64_t begin);
  Buffer& end_of_file(Lock& lock, Handle& handle, std::uint64_t bytes);
  Buffer* find(std::uint64_t begin);
  Buffer& fill(Buffer& buffer, Handle& handle, std::uint64_t begin);
  Buffer* unused();
  Buffer* oldest();
  void hand_over(Buffer& buffer);
  void hand_over_all();
  void drain(Lock& lock);
  void leave_copies();
  void leave_whole();
  static void rewind(Handle& handle);
  void settle_locked(Lock& lock);
  bool any(Buffer::State state) const;

  // ahead.cpp
  /// Copies what was read ahead, or reads it now with what follows; false: the reader is not one that this helps.
  bool read_ahead(Lock& lock, Handle& handle, const iovec& piece, std::uint64_t offset);
  Buffer* ahead_window(Lock& lock, Handle& handle, std::uint64_t begin);
  void fetch_next(Handle& handle, std::uint64_t begin);
  Buffer* find_ahead(std::uint64_t begin);
  Buffer* begin_ahead(Handle& handle, std::uint64_t begin, std::uint64_t kept);
  void fetch(Buffer& buffer, Statistics::Calls& calls) const;
  void drop(Buffer& buffer);
  /// Nothing is read ahead any more.
  void drop_ahead(Lock& lock);
  void finish_ahead(Buffer& buffer);

  /// Behind the last byte that is buffered.
  std::uint64_t dirty_end() const;
  Buffer* next_to_rescue();
  static bool is_ours(Buffer& buffer);
  void write_here(Buffer& buffer);
  /// Needs no lock: nobody else touches a queued buffer.
  Written write_out(const Buffer& buffer) const;
  void write_run(const Buffer& buffer, Runs::Run run, Written& sum) const;
  void store(const Buffer& buffer) const;
  void take_in(const Written& what);
  audit::Outcome outcome() const;
  void say_lost(long error, base::Extent where) const;
  long take_error();

  long take_late(Handle& handle, std::span<const iovec> pieces, At at);
  void catch_up(Lock& lock);

  std::mutex mutex_;
  Condition changed_;
  std::atomic<bool> used_{false};
  bool buffering_ = false;
  bool paused_ = false;  ///< not buffering, but only until the children that have its descriptors are gone
  bool forked_ = false;
  std::uint32_t passed_ = 0;  ///< calls while it is paused
  bool inherited_ = false;    ///< from the parent
  bool appending_ = false;    ///< what is buffered is to be appended
  dev_t device_ = 0;
  ino_t inode_ = 0;
  hints::StreamHints hints_ = {};
  Handle* handles_ = nullptr;
  Buffer own_[kMostBuffers];
  Buffer* buffers_ = nullptr;  ///< own_, or those of region_
  survive::Region region_ = {};
  std::string_view lost_ = {};  ///< why buffers do not survive although they were to
  Once* once_ = nullptr;
  Whole* whole_ = nullptr;
  std::uint64_t try_whole_ = 0;  ///< when to look again whether it can be kept whole
  std::uint32_t count_ = 0;
  Buffer* last_ = nullptr;
  std::uint64_t limit_ = 0;           ///< where the kernel lets files end (RLIMIT_FSIZE)
  std::uint32_t ahead_ = 0;           ///< buffers that hold what was read ahead
  std::uint32_t wasted_windows_ = 0;  ///< in succession
  long error_ = 0;                    ///< -errno that nobody has been told yet
  bool starved_ = false;              ///< there was no memory for one of its buffers
  Reason reason_ = Reason::none;      ///< why it is left
  Origin origin_ = {};
  Statistics statistics_ = {}, published_ = {};
  std::size_t path_size_ = 0;
  char path_[512] = {};
  // What signal handlers wrote that had interrupted the holder: {handle, at, size, bytes}*.
  std::atomic<std::size_t> late_size_{0};
  std::byte late_[kLateBytes] = {};
};

}  // namespace pario::stream
