// Series of small reads: one system call reads a window of the file, from which several calls of
// several ranks take their bytes.
//
// After some ascending reads that lie close together, a rank reads a whole window into memory that
// the ranks of a node share. It and other ranks copy from it. A rank pins the window that it copies
// from, so that its bytes stay; no rank waits for a pin. A rank publishes the window that it is
// about to read, so that others do not read it, too: they wait for it, but not for long. Windows
// grow with their series, so that a short series reads few bytes in vain.
//
// A read takes the bytes of a window only if they were read after every change of the file that the
// program can know of. Windows are dropped
// - by a change of the file through this handle, on any rank (note_change());
// - for a process that may know of another change: by MPI communication, a call such as
//   MPI_File_sync, or its own write through another handle (note_event());
// - when they are older than a limit, for changes that are announced in other ways.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "core/base/base.hpp"
#include "core/comm/spin_time.hpp"
#include "core/file/file.hpp"

namespace pario::engine {

/// The windows of one file on one node, as one rank uses them. Thread-safe.
class ReadAhead {
 public:
  static constexpr std::uint64_t kWindow = 64 << 10;    ///< most bytes
  static constexpr std::uint64_t kMostPiece = 8 << 10;  ///< larger reads go to the file
  /// Reads of a series before its first window, and the reads that a window has to serve.
  static constexpr std::uint64_t kFirstReads = 4, kLeastServed = 8;
  /// The first window of a series holds so many of its reads; each further one is so many times as
  /// large as the one before.
  static constexpr std::uint64_t kFirstServed = 16, kGrowth = 4;

  /// Bytes of zeroed memory that `ranks` ranks of a node share.
  static std::size_t memory_size(int ranks) {
    return sizeof(Shared) + sizeof(Rank) * static_cast<std::size_t>(ranks);
  }
  /// The first bytes of the memory of one rank, which alone have to be zero.
  static const std::size_t kHeader;
  /// `memory`, aligned to 64 bytes, and `file` must outlive the object.
  ReadAhead(std::byte* memory, file::File& file, int rank, int ranks, std::uint64_t most_age_ns);

  /// Copies the bytes of `where` to `to` if they belong to a series. False: they have to be read
  /// from the file. `read`: the bytes of a window that the call has read.
  bool read(base::Extent where, std::byte* to, std::optional<std::uint64_t>& read) {
    if (where.length() > kMostPiece) return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    if (!covers(where) || !is_fresh()) return read_on(where, to, read);
    copy(where, to);
    return true;
  }
  /// Drops the windows of all ranks, after a change of the file.
  void note_change() {
    if (shared_.is_used.load() != 0) shared_.changes.fetch_add(1);
  }

 private:
  using Number = std::atomic<std::uint64_t>;
  /// A window; only one rank fills it.
  struct Slot {
    Number begin, end;  ///< of its bytes; end is 0 while they are not valid
    Number changes;     ///< of the file, before they were read
    Number read_at;     ///< ticks
  };
  struct alignas(64) Shared {
    Number changes;  ///< of the file
    Number is_used;  ///< not 0: a rank has read a window
  };
  static constexpr std::size_t kSlots = 2;  // of a rank, because other ranks may pin one
  struct Rank {
    alignas(64) Number pin;  ///< 1 + the number of the slot that this rank copies from; 0: none
    alignas(64) Number coming_begin;  ///< of the window that this rank is reading from the file
    Number coming_end;                ///< 0: it is reading none
    alignas(64) std::array<Slot, kSlots> slots;
    alignas(64) std::array<std::array<std::byte, kWindow>, kSlots> bytes;
  };
  /// The window that this rank copies from; an empty extent: none.
  struct Current {
    base::Extent extent = {};
    const std::byte* bytes = nullptr;
    std::uint64_t changes = 0, events = 0, read_at = 0;
  };

  bool covers(base::Extent where) const {
    return where.begin >= current_.extent.begin && where.end <= current_.extent.end;
  }
  bool is_fresh() const;
  void copy(base::Extent where, std::byte* to);
  bool read_on(base::Extent where, std::byte* to, std::optional<std::uint64_t>& read);
  bool continues_series(base::Extent where);
  void leave_window();
  void drop_known_changes();
  bool find_window(base::Extent where);
  bool is_coming(base::Extent where) const;
  bool await_window(base::Extent where);
  bool enter_window(std::size_t number, base::Extent where);
  bool fill_window(base::Extent where, std::optional<std::uint64_t>& read);
  base::Extent choose_window(base::Extent where) const;
  bool is_worth_a_window();
  Slot* find_free_slot(std::size_t& number);
  bool is_pinned(std::size_t number) const;
  Slot& slot(std::size_t number) { return ranks_[number / kSlots].slots[number % kSlots]; }
  std::byte* bytes_of(std::size_t number) {
    return ranks_[number / kSlots].bytes[number % kSlots].data();
  }

  Shared& shared_;
  std::span<Rank> ranks_;
  const std::size_t rank_;
  file::File& file_;
  const std::uint64_t most_age_;  // ticks
  std::mutex mutex_;              // guards the members below, and this rank's part of the memory
  comm::SpinTime spin_time_;      // of waits for windows of other ranks
  Current current_;
  base::Extent last_ = {};               // read
  std::uint64_t events_ = 0;             // of the process, at the last read outside of a window
  bool knows_changes_ = true;            // perhaps, which no window may lack
  std::uint64_t reads_ = 0;              // of the series
  std::uint64_t step_ = 0;               // bytes from a read of the series to the next
  std::uint64_t window_ = 0;             // bytes of the last window of the series; 0: none
  std::uint64_t needed_ = kFirstReads;   // of a series, before a window
  std::uint64_t served_ = kLeastServed;  // reads by this rank, since it has filled a window
};

}  // namespace pario::engine
