// The table of files that the program has open and that may be kept, and of kept handles. One
// thread at a time works on an entry.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "core/base/base.hpp"
#include "layers/chain/chain.hpp"

namespace pario::handles {

inline constexpr std::size_t kMaxEntries = 128;
inline constexpr std::size_t kLongestPath = 256, kLongestMode = 8;

/// The arguments of an open call. A relative path belongs to the current directory of the call.
struct Name {
  std::string_view path;
  std::uint64_t directory = 0;  ///< hash of the directory; 0: the path is absolute
  std::uint64_t hash = base::xxh64(path);
  int flags = 0;               ///< of a descriptor, without those that act only once
  std::string_view mode = {};  ///< of a stream
};

/// busy: claimed by a thread. open: the program has the file open. kept: the program has closed it.
enum class State : std::uint8_t { none, busy, open, kept };

struct alignas(64) Entry {
  // The first line of the processor's cache: searches read no others of most entries.
  State state = State::none;
  bool reopens = false;               ///< the next opening of the name returns it (hint `handles`)
  bool lazy = false;                  ///< closing does not wait for the bytes (hint `lazyclose`)
  std::atomic<bool> pending = false;  ///< the kept stream has pending bytes
  int error = 0;                      ///< errno of pending bytes that could not be written
  int descriptor = -1;
  int flags = 0;
  std::uint64_t hash = 0;  ///< of the name
  std::FILE* stream = nullptr;
  std::uint64_t closed = 0;  ///< ns; when the program closed it
  struct stat file = {};
  std::uint64_t checked = 0;  ///< ns; latest time at which its name referred to it
  std::uint32_t epoch = 0;    ///< of name_watch, at that time
  bool unwatched = false;     ///< its name cannot be watched: each opening checks it
  std::uint64_t directory = 0;
  std::size_t path_size = 0;
  char path[kLongestPath];
  char mode[kLongestMode];

  bool has_name(const Name& name) const {
    return hash == name.hash && flags == name.flags && directory == name.directory &&
           std::string_view(path, path_size) == name.path && name.mode == mode;
  }
  bool has_file(const struct stat& other) const {
    return file.st_dev == other.st_dev && file.st_ino == other.st_ino;
  }
  void set_name(const Name& name) {
    hash = name.hash;
    flags = name.flags;
    directory = name.directory;
    path_size = name.path.copy(path, kLongestPath);
    path[path_size] = 0;
    mode[name.mode.copy(mode, kLongestMode - 1)] = 0;
  }
};

extern std::array<Entry, kMaxEntries> table;
extern std::uint64_t table_lock;
extern std::atomic<std::uint32_t> used_entries;     // entries that are not State::none
extern std::atomic<std::uint32_t> pending_entries;  // entries with pending bytes
[[gnu::tls_model("initial-exec")]] extern constinit thread_local bool has_table_lock;

/// Calls `work` with the table locked. In a signal handler that interrupts such a call it does
/// nothing.
template <class Work>
void with_table(Work work) {
  if (has_table_lock) return;
  has_table_lock = true;
  {
    const base::SpinLock lock(table_lock);
    work();
  }
  has_table_lock = false;
}

/// Sets a state with the table locked.
void set_state(Entry& entry, State state);
/// Releases a claimed entry, in a new state.
void release(Entry& entry, State state);
/// Sets whether a claimed entry has pending bytes.
void set_pending(Entry& entry, bool pending);

/// Claims the first entry in a state for which `fits` is true: it becomes busy. Null: none.
template <class Fits>
Entry* claim(State state, Fits fits) {
  Entry* found = nullptr;
  if (pario_in_vfork_child != 0 ||
      (state != State::none && used_entries.load(std::memory_order_acquire) == 0))
    return nullptr;
  with_table([&] {
    for (Entry& entry : table)
      if (entry.state == state && fits(entry)) return set_state(*(found = &entry), State::busy);
  });
  return found;
}

/// True if `fits` is true for an entry in a state. For busy entries, `fits` may read only members
/// that do not change.
template <class Fits>
bool any(State state, Fits fits) {
  bool found = false;
  if (used_entries.load(std::memory_order_acquire) == 0) return false;
  with_table([&] {
    for (const Entry& entry : table) found = found || (entry.state == state && fits(entry));
  });
  return found;
}

/// Marks this thread as writing or closing files that other threads may be about to use.
class BusyMark {
 public:
  BusyMark();
  ~BusyMark();
  BusyMark(const BusyMark&) = delete;
  BusyMark& operator=(const BusyMark&) = delete;

 private:
  bool outer_;
};
bool is_any_thread_busy();
/// Sleeps for a moment while threads are busy. False if the caller must not wait any longer: the
/// patience since `begin` (ns) has ended, or a signal handler has interrupted a busy thread.
bool wait_for_busy_threads(std::uint64_t begin);

/// Empties the table in the child of a fork.
void reset_table();

}  // namespace pario::handles
