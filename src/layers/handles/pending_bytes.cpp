#include "layers/handles/pending_bytes.hpp"

#include <fcntl.h>
#include <stdio_ext.h>

#include "layers/buffering/buffering.hpp"

namespace pario::handles {
namespace {

// The files that can be read without a call that this layer sees. Bits are never cleared.
constinit base::FileBits observable_files;
constinit std::atomic<bool> standard_marked{false};

/// Writes the pending bytes of open and kept entries for which `fits` is true; false: none.
template <class Fits>
bool write_unclaimed(Fits fits) {
  bool found = false;
  for (const State state : {State::kept, State::open})
    while (Entry* entry = claim(state, fits)) {
      write_pending(*entry);
      release(*entry, state);
      found = true;
    }
  return found;
}

/// Writes the pending bytes likewise, and waits for entries that other threads have claimed.
template <class Fits>
bool write_fitting(Fits fits) {
  const auto is_pending = [&](const Entry& entry) {
    return entry.pending.load(std::memory_order_acquire) && fits(entry);
  };
  const std::uint64_t begin = base::monotonic_ns();
  bool found = write_unclaimed(is_pending);
  while (any(State::busy, is_pending) && wait_for_busy_threads(begin)) {
    write_unclaimed(is_pending);
    found = true;
  }
  return found;
}

}  // namespace

void write_pending(Entry& entry) {
  if (!entry.pending.load(std::memory_order_acquire)) return;
  const base::SavedErrno saved;
  const BusyMark mark;
  if (!buffering::flush_stream(entry.stream)) entry.error = errno;
  set_pending(entry, false);
}

bool write_pending_of(const struct stat& file) {
  if (pario_in_vfork_child != 0 || !S_ISREG(file.st_mode)) return false;
  return write_fitting([&](const Entry& entry) { return entry.has_file(file); });
}

void write_pending_of(int descriptor) {
  struct stat file;
  const base::SavedErrno saved;
  if (base::status_of(descriptor, file) == 0) write_pending_of(file);
}

void write_pending_of(int directory, const char* path) {
  struct stat file;
  const base::SavedErrno saved;
  if (path != nullptr && base::status_of(directory, path, AT_EMPTY_PATH, file) >= 0)
    write_pending_of(file);
}

void write_pending_of_others(const Entry& entry) {
  if (pending_entries.load(std::memory_order_acquire) == 0) return;
  write_fitting([&](const Entry& other) { return &other != &entry && other.has_file(entry.file); });
}

void write_all_pending() {
  if (pending_entries.load(std::memory_order_acquire) == 0) return;
  write_fitting([](const Entry&) { return true; });
}

void mark_observable(int descriptor) {
  struct stat file;
  if (base::status_of(descriptor, file) != 0) return;
  observable_files.set(file, true);
}

bool may_delay_bytes(const Entry& entry) {
  std::FILE* stream = entry.stream;
  if (!entry.lazy || !buffering::has_buffer(stream) || stream->_mode > 0 ||
      ferror_unlocked(stream) != 0)
    return false;
  if (entry.reopens &&
      (entry.mode[0] != 'a' || std::string_view(entry.mode).find('+') != std::string_view::npos))
    return false;
  if (__fpending(stream) == 0) return false;
  if (!standard_marked.exchange(true))
    for (const int standard : {0, 1, 2}) mark_observable(standard);
  const auto has_same_file = [&](const Entry& other) { return other.has_file(entry.file); };
  return !observable_files.has(entry.file) && !any(State::open, has_same_file);
}

}  // namespace pario::handles
