#include "layers/handles/kept_handles.hpp"

#include <fcntl.h>
#include <stdio_ext.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/base/threads.hpp"
#include "layers/buffering/buffering.hpp"
#include "layers/handles/handles.hpp"
#include "layers/handles/name_watch.hpp"
#include "layers/handles/names.hpp"
#include "layers/handles/pending_bytes.hpp"

namespace pario::handles {
namespace {

using symbols::Symbol;

constexpr std::uint64_t kKeptNs = 2'000'000'000;  // age at which a kept handle is closed
constexpr std::uint64_t kPeriodNs = 500'000'000;  // of the thread that closes them

constinit std::atomic<std::uint32_t> kept_entries{0};
constinit std::atomic<unsigned> open_standard{7};   // bits: which of 0, 1 and 2 are open
constinit base::FutexWord closer_sleeps{0};         // the closing thread waits for a kept handle
constinit base::FutexWord urgent{0};                // counts handles to be closed at once
constinit std::atomic<bool> closer_started{false};  // the closing thread runs
constinit std::atomic<bool> stopped{false};         // no further handles are kept
constinit std::atomic<std::uint64_t> kept_bits[buffering::kCapacity / 64] = {};  // by descriptor

void set_kept(int descriptor, bool kept) {
  const std::uint64_t bit = 1ull << (descriptor % 64);
  if (kept)
    kept_bits[descriptor / 64].fetch_or(bit, std::memory_order_release);
  else
    kept_bits[descriptor / 64].fetch_and(~bit, std::memory_order_release);
  kept_entries.fetch_add(kept ? 1u : -1u, std::memory_order_release);
}

/// Closes the kept handle of a claimed entry.
void close_for_good(Entry& entry) {
  const base::SavedErrno saved;
  const BusyMark mark;
  set_kept(entry.descriptor, false);
  const int result = entry.stream != nullptr
                         ? chain::entry<int (*)(std::FILE*), Symbol::fclose>()(entry.stream)
                         : chain::entry<int (*)(int), Symbol::close>()(entry.descriptor);
  if (result != 0) {
    base::Text<512> text;
    buffers::print_message(text.add(std::string_view(entry.path, entry.path_size))
                               .add(": close: ")
                               .add(base::errno_name(errno))
                               .view());
  }
  release(entry, State::none);
}

/// Removes a claimed entry whose file the program has open: it is not kept at close.
void remove_open(Entry& entry) {
  if (entry.stream != nullptr) mark_observable(entry.descriptor);
  release(entry, State::none);
}

template <class Fits>
bool close_fitting(Fits fits) {
  bool found = false;
  const BusyMark mark;
  while (Entry* entry = claim(State::kept, fits)) {
    close_for_good(*entry);
    found = true;
  }
  return found;
}

/// Closes kept handles, and marks open ones not to be kept, because their names may no longer refer
/// to them.
template <class Fits>
void expire_fitting(Fits fits) {
  const std::uint64_t begin = base::monotonic_ns();
  do {
    close_fitting(fits);
    while (Entry* entry = claim(State::open, fits)) {
      write_pending(*entry);
      remove_open(*entry);
    }
  } while (any(State::busy, fits) && wait_for_busy_threads(begin));
}

void expire_file(const struct stat& file) {
  expire_fitting([&](const Entry& entry) { return entry.has_file(file); });
}

/// The closing thread: while a handle is kept, closes old handles every kPeriodNs; closes at once
/// the handles that are kept only because of pending bytes.
void* close_old(void*) {
  for (;;) {
    if (kept_entries.load(std::memory_order_acquire) == 0) {
      closer_sleeps.store(1, std::memory_order_release);
      if (kept_entries.load(std::memory_order_seq_cst) == 0)
        base::futex_wait(closer_sleeps, 1, 1000 * kKeptNs);
    }
    closer_sleeps.store(0, std::memory_order_release);
    const std::uint32_t seen = urgent.load(std::memory_order_acquire);
    const std::uint64_t limit = base::monotonic_ns() - kKeptNs;
    close_fitting([=](const Entry& entry) { return entry.closed < limit || !entry.reopens; });
    base::futex_wait(urgent, seen, kPeriodNs);
  }
  return nullptr;
}

void start_closer() {
  if (closer_started.exchange(true, std::memory_order_acq_rel)) return;
  if (!base::start_detached_thread(close_old, nullptr))
    closer_started.store(false, std::memory_order_release);
}

int truncate_file(int descriptor) {
  const base::SavedErrno saved;
  return chain::entry<int (*)(int, off_t), Symbol::ftruncate>()(descriptor, 0);
}

Entry* claim_kept(const std::optional<Name>& name) {
  if (!name || kept_entries.load(std::memory_order_acquire) == 0 ||
      open_standard.load(std::memory_order_relaxed) != 7)
    return nullptr;
  return claim(State::kept,
               [&](const Entry& entry) { return entry.reopens && entry.has_name(*name); });
}

/// Prepares a claimed kept handle for its return to the program. False: it had to be closed.
bool prepare_return(Entry& entry, bool truncates) {
  if (!is_current(entry)) return close_for_good(entry), false;
  write_pending_of_others(entry);
  set_kept(entry.descriptor, false);
  if (!truncates || truncate_file(entry.descriptor) == 0) return true;
  set_kept(entry.descriptor, true);
  return close_for_good(entry), false;
}

/// True if the table is full, and no entry has the name.
bool is_full_of_others(const Name& name) {
  const auto has_name = [&](const Entry& entry) { return entry.has_name(name); };
  return used_entries.load(std::memory_order_acquire) == kMaxEntries &&
         !any(State::kept, has_name) && !any(State::open, has_name);
}

/// Adds an entry for an open file; false: the table is full.
bool add_entry(const Name& name, const hints::StreamHints& hints, int descriptor,
               std::FILE* stream) {
  struct stat file;
  if (is_full_of_others(name) || base::status_of(descriptor, file) != 0) return false;
  expire_fitting(
      [&](const Entry& entry) { return entry.has_name(name) && !is_same(entry.file, file); });
  Entry* entry = claim(State::none, [](const Entry&) { return true; });
  if (entry == nullptr) return false;
  entry->error = 0;
  entry->reopens = hints.handles;
  entry->lazy = hints.lazyclose;
  entry->descriptor = descriptor;
  entry->stream = stream;
  entry->file = file;
  entry->epoch = 0;
  entry->unwatched = false;
  entry->set_name(name);
  release(*entry, State::open);
  return true;
}

/// The hints of a path; empty: its handles are not kept.
std::optional<hints::StreamHints> find_hints(int directory, const char* path) {
  const base::Path name(directory, path);
  if (!name.is_known()) return {};
  const buffering::Setting setting = buffering::find_setting(name.view());
  const bool keeps =
      !setting.specification.empty() && (setting.hints.handles || setting.hints.lazyclose);
  return keeps ? std::optional(setting.hints) : std::nullopt;
}

/// Makes a claimed entry a kept handle, and wakes the closing thread if necessary.
void make_kept(Entry& entry) {
  entry.closed = base::monotonic_ns();
  set_kept(entry.descriptor, true);
  const bool reopens = entry.reopens;
  release(entry, State::kept);
  start_closer();
  if (closer_sleeps.load(std::memory_order_seq_cst) != 0 && closer_sleeps.exchange(0) != 0)
    base::futex_wake(closer_sleeps);
  if (reopens) return;
  urgent.fetch_add(1, std::memory_order_release);
  base::futex_wake(urgent);
}

/// Writes the bytes of a stream and resets it as if it had just been opened; false: not possible.
bool reset_stream(std::FILE* stream) {
  if (!buffering::has_buffer(stream) || stream->_mode > 0 || ferror_unlocked(stream) != 0)
    return false;
  // Below layer buffering, where flushes are not ignored (hint `ignoreflush`).
  if (chain::next<chain::LayerId::buffering, Symbol::fflush_unlocked, int>(stream) != 0)
    return false;
  __fpurge(stream);
  clearerr_unlocked(stream);
  stream->_mode = 0;
  stream->_offset = -1;
  return true;
}

buffers::DirtyBytes dirty_bytes_of(const Entry& entry) {
  if (!entry.lazy) return buffers::DirtyBytes::flush;
  return entry.reopens ? buffers::DirtyBytes::keep : buffers::DirtyBytes::enqueue;
}

/// Prepares a claimed entry that the program closes; false: it cannot be kept.
bool prepare_keeping(Entry& entry) {
  if (entry.error != 0) return false;
  if (stopped.load(std::memory_order_acquire)) return false;
  if (buffers::Handle* handle = buffering::handle_of(entry.descriptor))
    return buffers::keep_handle(*handle, dirty_bytes_of(entry));
  if (entry.stream == nullptr) return false;
  const bool delays = may_delay_bytes(entry);
  set_pending(entry, delays);
  return delays || (entry.reopens && reset_stream(entry.stream));
}

/// Claims an open entry that another thread has claimed; null: none.
template <class Fits>
Entry* wait_for_open(Fits fits) {
  Entry* entry = nullptr;
  for (const std::uint64_t begin = base::monotonic_ns();
       entry == nullptr && any(State::busy, fits) && wait_for_busy_threads(begin);)
    entry = claim(State::open, fits);
  return entry;
}

/// Closes, for the program, the open entry for which `fits` is true.
template <class Fits>
CloseResult keep_fitting(Fits fits) {
  Entry* entry = claim(State::open, fits);
  if (entry == nullptr) entry = wait_for_open(fits);
  if (entry == nullptr) return {};
  const BusyMark mark;
  const CloseResult result{prepare_keeping(*entry), entry->error};
  if (result.kept)
    make_kept(*entry);
  else
    release(*entry, State::none);
  return result;
}

bool is_in_settings(std::string_view key) {
  const hints::HintSet& settings = hints::of_process();
  return settings.streams.view().find(key) != std::string_view::npos ||
         settings.iobuf_params.view().find(key) != std::string_view::npos;
}

}  // namespace

bool is_active() {
  return buffering::is_active() && (is_in_settings(":handles") || is_in_settings(":lazyclose"));
}

bool is_kept(int descriptor) {
  if (static_cast<unsigned>(descriptor) >= buffering::kCapacity ||
      kept_entries.load(std::memory_order_relaxed) == 0)
    return false;
  return (kept_bits[descriptor / 64].load(std::memory_order_acquire) >> (descriptor % 64) & 1) !=
             0 &&
         pario_in_vfork_child == 0;
}

int reopen(int directory, const char* path, int flags) {
  const BusyMark mark;
  Entry* entry = claim_kept(name_of(directory, path, flags));
  if (entry == nullptr || !prepare_return(*entry, (flags & O_TRUNC) != 0)) return -1;
  const int descriptor = entry->descriptor;
  release(*entry, State::open);
  return descriptor;
}

std::FILE* reopen(const char* path, const char* mode) {
  const BusyMark mark;
  Entry* entry = claim_kept(name_of(path, mode));
  if (entry == nullptr || !prepare_return(*entry, mode[0] == 'w')) return nullptr;
  std::FILE* stream = entry->stream;
  const base::SavedErrno saved;
  // The background thread may have failed to write its bytes.
  if (entry->error == 0 && ferror_unlocked(stream) != 0) entry->error = EIO;
  const bool appends_only = mode[0] == 'a' && std::strchr(mode, '+') == nullptr;
  if (!entry->pending && !appends_only && buffering::handle_of(entry->descriptor) == nullptr)
    chain::entry<int (*)(std::FILE*, long, int), Symbol::fseek>()(stream, 0, SEEK_SET);
  release(*entry, State::open);
  return stream;
}

void record_open(int directory, const char* path, int flags, int descriptor) {
  if (descriptor < 0) return;
  const base::SavedErrno saved;
  record_standard_number(descriptor, true);
  forget(descriptor);  // closed by a call that pario does not see
  const auto name = name_of(directory, path, flags & ~O_EXCL);
  if (descriptor <= 2 || !name || buffering::handle_of(descriptor) == nullptr) return;
  if (const auto hints = find_hints(directory, path)) add_entry(*name, *hints, descriptor, nullptr);
}

void record_open(const char* path, const char* mode, std::FILE* stream) {
  if (stream == nullptr) return;
  const base::SavedErrno saved;
  const int descriptor = stream->_fileno;
  forget(descriptor);
  const auto name = name_of(path, mode);
  const bool keepable =
      buffering::has_buffer(stream) || buffering::handle_of(descriptor) != nullptr;
  const auto hints = descriptor > 2 && name && keepable ? find_hints(AT_FDCWD, path) : std::nullopt;
  if (!hints || !add_entry(*name, *hints, descriptor, stream)) mark_observable(descriptor);
}

CloseResult keep_open(int descriptor) {
  return keep_fitting([=](const Entry& entry) {
    return entry.descriptor == descriptor && entry.stream == nullptr;
  });
}

CloseResult keep_open(std::FILE* stream) {
  return keep_fitting([=](const Entry& entry) { return entry.stream == stream; });
}

void forget(int descriptor) {
  if (descriptor >= 0) forget(static_cast<unsigned>(descriptor), static_cast<unsigned>(descriptor));
}

void forget(unsigned first, unsigned last) {
  const auto fits = [=](const Entry& entry) {
    const auto number = static_cast<unsigned>(entry.descriptor);
    return first <= number && number <= last;
  };
  while (Entry* entry = claim(State::open, fits)) remove_open(*entry);
  while (Entry* entry = claim(State::kept, fits)) {
    set_kept(entry->descriptor, false);
    release(*entry, State::none);
  }
}

void record_standard_number(int descriptor, bool open) {
  if (descriptor < 0 || descriptor > 2) return;
  if (open) {
    mark_observable(descriptor);
    open_standard.fetch_or(1u << descriptor, std::memory_order_relaxed);
  } else {
    open_standard.fetch_and(~(1u << descriptor), std::memory_order_relaxed);
  }
}

void forget_all() {
  closer_started.store(false, std::memory_order_relaxed);
  closer_sleeps.store(0, std::memory_order_relaxed);
  for (Entry& entry : table)
    if (entry.state == State::kept) set_kept(entry.descriptor, false);
  reset_table();
  name_watch::stop();  // parent and child share the queue
}

void close_kept(int descriptor) {
  if (is_kept(descriptor))
    close_fitting([=](const Entry& entry) { return entry.descriptor == descriptor; });
}

void expire_name(int directory, const char* path) {
  struct stat file;
  if (path == nullptr || used_entries.load(std::memory_order_acquire) == 0) return;
  if (base::status_of(directory, path, 0, file) < 0 || !S_ISREG(file.st_mode))
    return expire_all_names();
  expire_file(file);
}

void expire_names_of(int descriptor) {
  struct stat file;
  if (used_entries.load(std::memory_order_acquire) != 0 && base::status_of(descriptor, file) == 0)
    expire_file(file);
}

void expire_all_names() {
  expire_fitting([](const Entry&) { return true; });
}

bool close_all_kept() {
  const std::uint64_t begin = base::monotonic_ns();
  const bool found = close_fitting([](const Entry&) { return true; });
  write_all_pending();
  while (is_any_thread_busy() && wait_for_busy_threads(begin)) {
  }
  return found;
}

void stop() {
  stopped.store(true, std::memory_order_release);
  close_all_kept();
}

}  // namespace pario::handles
