#include "layers/buffering/streams.hpp"

#include <dlfcn.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "core/symbols/symbols.hpp"

namespace pario::buffering {

constinit thread_local const void* fopen_caller = nullptr;

/// An open stream with a setting, and its buffer (null: that of the C library).
struct StreamEntry {
  std::FILE* stream = nullptr;
  struct stat file = {};
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t delay = 0;  ///< seconds
  std::uint64_t since = 0;  ///< ns; when it was last seen without pending bytes, or flushed
  bool ignores_flush = false;
  int own_mode = _IOFBF;  ///< of the program: _IONBF, _IOLBF or _IOFBF
};

constinit std::atomic<std::uint32_t> stream_buffers{0};

namespace {

constinit std::array<StreamEntry, 256> entries{};
constinit std::uint64_t lock = 0;
constinit std::atomic<std::uint32_t> used_entries{0};

StreamEntry* find(const std::FILE* stream) {
  const base::SpinLock hold(lock);
  for (StreamEntry& entry : entries)
    if (entry.stream == stream) return &entry;
  return nullptr;
}

int mode_of(hints::StdioMode mode) { return mode == hints::StdioMode::line ? _IOLBF : _IOFBF; }

using SetBuffer = int (*)(std::FILE*, char*, int, std::size_t);
int set_buffer(std::FILE* stream, std::byte* memory, int mode, std::size_t size) {
  return chain::entry<SetBuffer, Symbol::setvbuf>()(stream, reinterpret_cast<char*>(memory), mode,
                                                    size);
}

constinit std::atomic<bool> has_unlocked_writer{false};

/// True for functions that write a stream without its lock. __overflow: putc_unlocked, as
/// compilers inline it.
bool writes_unlocked(std::string_view name) {
  return name == "__overflow" || name == "__fsetlocking" ||
         (name.ends_with("_unlocked") &&
          (name.starts_with("put") || name.starts_with("fput") || name.starts_with("fwrite")));
}

/// Looks for such calls in the loaded objects, if there are new ones: the background thread cannot
/// flush the streams of such a program.
void find_unlocked_writers() {
  static constinit std::atomic<unsigned long long> looked_at{0};
  const unsigned long long objects = symbols::count_loadings();
  if (looked_at.exchange(objects) != objects && symbols::is_referenced(writes_unlocked))
    has_unlocked_writer.store(true, std::memory_order_release);
}

/// Flushes streams whose bytes are older than their delay. In the background thread of module
/// buffers; a stream that another thread has locked is flushed the next time.
void flush_old_streams() {
  if (has_unlocked_writer.load(std::memory_order_acquire)) return;
  const std::uint64_t now = base::monotonic_ns();
  for (StreamEntry& entry : entries) {
    const base::SpinLock hold(lock);
    if (entry.stream == nullptr || entry.memory == nullptr || entry.delay == 0 ||
        ftrylockfile(entry.stream) != 0)
      continue;
    if (__fpending(entry.stream) == 0) entry.since = now;
    if (now - entry.since >= entry.delay * 1'000'000'000) {
      flush_stream(entry.stream);
      entry.since = now;
    }
    funlockfile(entry.stream);
  }
}

void add_entry(std::FILE* stream, const hints::StreamHints& hints, std::byte* memory,
               std::uint64_t bytes) {
  StreamEntry added{stream,
                    {},
                    memory,
                    bytes,
                    hints.delay,
                    base::monotonic_ns(),
                    hints.ignoreflush,
                    stream == stderr ? _IONBF : _IOFBF};
  if (base::status_of(stream->_fileno, added.file) != 0) added.file = {};
  const base::SpinLock hold(lock);
  for (StreamEntry& entry : entries)
    if (entry.stream == nullptr) {
      used_entries.fetch_add(1, std::memory_order_relaxed);
      if (memory != nullptr) stream_buffers.fetch_add(1, std::memory_order_relaxed);
      entry = added;
      return;
    }
}

/// True if this thread had locked a stream before its last lock: it is in a signal handler that has
/// interrupted a call on the stream.
bool is_interrupted(const std::FILE* stream) {
  struct Lock {  // of the C library
    int state, depth;
    void* owner;
  };
  return reinterpret_cast<const Lock*>(stream->_lock)->depth > 1;
}

/// Calls `visit` with each entry with a buffer of this layer whose stream is not in use at this
/// moment.
template <class Visit>
void for_each_buffer(Visit visit) {
  const base::SavedErrno saved;
  std::uint32_t left = stream_buffers.load(std::memory_order_relaxed);
  for (StreamEntry& entry : entries) {
    if (left == 0) return;
    std::FILE* stream = entry.stream;
    if (stream == nullptr || entry.memory == nullptr) continue;
    --left;
    if (ftrylockfile(stream) != 0) continue;
    if (!is_interrupted(stream)) visit(entry);
    funlockfile(stream);
  }
}

/// Releases the buffer of an entry whose stream does not use it any more.
void release_buffer(StreamEntry& entry) {
  if (entry.memory == nullptr) return;
  buffers::release_memory(entry.memory, entry.bytes);
  entry.memory = nullptr;
  stream_buffers.fetch_sub(1, std::memory_order_relaxed);
}

/// Gives a stream back the buffer that the program set. Bytes that were read from a pipe cannot be
/// read again: they stay.
void restore_buffer(StreamEntry& entry) {
  std::FILE* stream = entry.stream;
  if (entry.own_mode == _IOFBF) return;
  if (__fpending(stream) != 0) flush_stream(stream);
  const bool holds_read_bytes = stream->_IO_read_end != stream->_IO_read_base;
  if (holds_read_bytes && (!S_ISREG(entry.file.st_mode) || stream->_IO_save_base != nullptr))
    return;
  std::byte* memory = std::exchange(entry.memory, nullptr);  // KeepBuffer lets the call pass
  const bool is_unbuffered = entry.own_mode == _IONBF;
  set_buffer(stream, is_unbuffered ? nullptr : memory, entry.own_mode,
             is_unbuffered ? 0 : entry.bytes);
  entry.memory = memory;
  entry.own_mode = _IOFBF;
  if (is_unbuffered) release_buffer(entry);
}

/// Writes the bytes that the program's own buffer would not hold.
void write_bytes(const StreamEntry& entry) {
  // Another thread may be writing the stream without its lock.
  if (entry.own_mode == _IOFBF && has_unlocked_writer.load(std::memory_order_acquire)) return;
  const auto own = static_cast<std::size_t>(entry.own_mode == _IOFBF ? entry.file.st_blksize : 1);
  if (__fpending(entry.stream) >= own) flush_stream(entry.stream);
}

/// As write_bytes. An unbuffered stream that has read ahead reads anew, from its own offset.
void write_or_restore(StreamEntry& entry) {
  write_bytes(entry);
  if (entry.own_mode == _IONBF && entry.stream->_IO_read_end != entry.stream->_IO_read_base)
    restore_buffer(entry);
}

bool is_of(const StreamEntry& entry, const struct stat& file) {
  return entry.file.st_dev == file.st_dev && entry.file.st_ino == file.st_ino;
}

/// True if the process can use the file of a stream in another way.
bool has_other_uses(const StreamEntry& entry) {
  const auto is_other = [](int descriptor, const void* argument) {
    const auto& own = *static_cast<const StreamEntry*>(argument);
    struct stat file;
    return descriptor != own.stream->_fileno && base::status_of(descriptor, file) == 0 &&
           is_of(own, file);
  };
  return buffers::has_descriptor(is_other, &entry) || buffers::is_mapped(entry.file.st_ino);
}

bool has_free_entry() { return find(nullptr) != nullptr; }

bool is_opened_by_cxx_library() {
  Dl_info info;
  return fopen_caller != nullptr && dladdr(fopen_caller, &info) != 0 && info.dli_sname != nullptr &&
         std::string_view(info.dli_sname).starts_with("_ZNSt12__basic_file");
}

std::uint64_t buffer_size(const std::FILE* stream, hints::StreamHints hints) {
  if (hints.stdio_size != 0) return hints.stdio_size;
  buffers::fill_unset_hints(hints, buffers::file_system_of(stream->_fileno));
  return hints.size;
}

/// Sets the buffer of a stream by its setting. Returns the reason for which it is not possible, or
/// Reason::none.
Reason apply_setting(std::FILE* stream, const hints::StreamHints& hints) {
  if (!has_free_entry()) return Reason::many;
  if (hints.stdio == hints::StdioMode::none) set_buffer(stream, nullptr, _IONBF, 0);
  const bool own = hints.stdio == hints::StdioMode::as_is || hints.stdio == hints::StdioMode::none;
  if (own || hints.survive) add_entry(stream, hints, nullptr, 0);
  if (own || hints.survive) return own ? Reason::none : Reason::survive;
  const std::uint64_t bytes = buffer_size(stream, hints);
  std::byte* memory = buffers::allocate_memory(bytes);
  if (memory == nullptr || set_buffer(stream, memory, mode_of(hints.stdio), bytes) != 0)
    return Reason::memory;
  add_entry(stream, hints, memory, bytes);
  // Builds the chain before the background thread needs it: that thread holds locks.
  chain::entry<int (*)(std::FILE*), Symbol::fflush_unlocked>();
  find_unlocked_writers();
  buffers::set_periodic_task(flush_old_streams);
  return Reason::none;
}

/// Locks a stream; false: another thread has held the lock for a second.
bool try_lock(std::FILE* stream) {
  constexpr std::uint64_t kPatienceNs = 1'000'000'000;
  const std::uint64_t begin = base::monotonic_ns();
  while (ftrylockfile(stream) != 0) {
    if (base::monotonic_ns() - begin > kPatienceNs) return false;
    base::system_call(SYS_sched_yield);
  }
  return true;
}

}  // namespace

void before_stream_open(const char* path) {
  if (path != nullptr) stop_buffering(AT_FDCWD, path, Reason::stdio);
}

void after_stream_open(const char* path, std::FILE* stream) {
  if (stream == nullptr || path == nullptr || !is_active()) return;
  const base::SavedErrno saved;
  if (StreamEntry* old = find_entry(stream)) remove_entry(old);  // before freopen
  const base::Path name(AT_FDCWD, path);
  if (name.is_known() && is_opened_by_cxx_library()) {
    const long flags = base::system_call(SYS_fcntl, stream->_fileno, F_GETFL);
    if (!register_descriptor(stream->_fileno, static_cast<int>(flags), name.view(), trace::ticks()))
      note_unbuffered(stream->_fileno);
    return;
  }
  note_unbuffered(stream->_fileno);
  if (!name.is_known()) return;
  const Setting setting = find_setting(name.view());
  if (setting.specification.empty()) return;
  const Reason reason = apply_setting(stream, setting.hints);
  buffers::log_outcome(origin_of(setting, trace::Layer::stdio, name.view(), stream->_fileno),
                       setting.hints, reason);
}

StreamEntry* find_entry(const std::FILE* stream) {
  return stream == nullptr ? nullptr : find(stream);
}

bool has_buffer(const std::FILE* stream) {
  const StreamEntry* entry = find_entry(stream);
  return entry != nullptr && entry->memory != nullptr;
}

bool is_open_as_stream(int descriptor) {
  struct stat file;
  if (used_entries.load(std::memory_order_relaxed) == 0 || base::status_of(descriptor, file) != 0)
    return false;
  const base::SpinLock hold(lock);
  for (const StreamEntry& entry : entries)
    if (entry.stream != nullptr && is_of(entry, file)) return true;
  return false;
}

void set_program_mode(std::FILE* stream, int mode) {
  StreamEntry* entry = find_entry(stream);
  if (entry == nullptr) return;
  const base::SavedErrno saved;
  flockfile(stream);
  entry->own_mode = mode;
  if (mode != _IOFBF &&
      (has_unlocked_writer.load(std::memory_order_acquire) || has_other_uses(*entry)))
    restore_buffer(*entry);
  funlockfile(stream);
}

void write_streams_on(int descriptor) {
  for_each_buffer([&](StreamEntry& entry) {
    if (entry.stream->_fileno == descriptor) write_or_restore(entry);
  });
}

bool write_streams_of(const struct stat& file) {
  bool found = false;
  for_each_buffer([&](StreamEntry& entry) {
    if (!is_of(entry, file)) return;
    found = true;
    write_bytes(entry);
  });
  return found;
}

void write_all_streams() {
  for_each_buffer([](StreamEntry& entry) {
    if (entry.own_mode != _IOFBF) write_or_restore(entry);
  });
}

void restore_streams_of(const struct stat& file) {
  for_each_buffer([&](StreamEntry& entry) {
    if (is_of(entry, file)) restore_buffer(entry);
  });
}

void restore_streams_on(int descriptor) {
  for_each_buffer([&](StreamEntry& entry) {
    if (entry.stream->_fileno == descriptor) restore_buffer(entry);
  });
}

void restore_all_streams() { for_each_buffer(restore_buffer); }

void stop_periodic_flush(StreamEntry* entry) {
  if (entry == nullptr) return;
  const base::SpinLock hold(lock);
  entry->delay = 0;
}

void remove_entry(StreamEntry* entry) {
  if (entry == nullptr) return;
  const base::SpinLock hold(lock);
  release_buffer(*entry);
  *entry = {};
  used_entries.fetch_sub(1, std::memory_order_relaxed);
}

bool flush_stream(std::FILE* stream) {
  flockfile(stream);
  const std::size_t bytes = __fpending(stream);
  const bool succeeded =
      chain::next<chain::LayerId::buffering, Symbol::fflush_unlocked, int>(stream) == 0;
  funlockfile(stream);
  if (succeeded) return true;
  const base::SavedErrno saved;
  base::Text<640> text;
  text.add(base::Path(stream->_fileno).view())
      .add(": ")
      .add(bytes)
      .add(" bytes, written by the program, did not reach the file: ");
  buffers::print_message(text.add(base::errno_name(errno)).view());
  return false;
}

bool ignores_flush(std::FILE* stream) {
  const StreamEntry* entry = find_entry(stream);
  return entry != nullptr && entry->memory != nullptr && entry->ignores_flush;
}

namespace {

/// Gives a standard stream the setting of its name, such as %stdout, otherwise that of the file to
/// which it is redirected. Only the name selects stderr, whose bytes users want at once.
void set_standard_buffer(std::FILE* stream, std::string_view name) {
  const int descriptor = fileno(stream);
  struct stat file;
  if (base::status_of(descriptor, file) != 0 || isatty(descriptor) != 0) return;
  Setting setting = find_setting(name);
  if (!setting.specification.empty()) {
    apply_setting(stream, setting.hints);
    return;
  }
  const base::Path path(descriptor);
  if (stream == stderr || !S_ISREG(file.st_mode) || !path.is_known()) return;
  setting = find_setting(path.view());
  if (setting.specification.empty()) return;
  const Reason reason = apply_setting(stream, setting.hints);
  buffers::log_outcome(origin_of(setting, trace::Layer::stdio, path.view(), descriptor),
                       setting.hints, reason);
}

}  // namespace

void set_standard_stream_buffers() {
  const base::SavedErrno saved;
  set_standard_buffer(stdin, "%stdin");
  set_standard_buffer(stdout, "%stdout");
  set_standard_buffer(stderr, "%stderr");
}

void flush_streams() {
  for_each_buffer([](const StreamEntry& entry) {
    if (__fpending(entry.stream) != 0) flush_stream(entry.stream);
  });
}

void reset_streams_in_child() { lock = 0; }

void write_pending_bytes() {
  for (const StreamEntry& entry : entries) {
    std::FILE* stream = entry.stream;
    if (stream == nullptr || entry.memory == nullptr || __fpending(stream) == 0) continue;
    const bool held = try_lock(stream);  // another thread may be writing the bytes
    const std::ptrdiff_t bytes = stream->_IO_write_ptr - stream->_IO_write_base;
    if (bytes > 0) base::system_call(SYS_write, stream->_fileno, stream->_IO_write_base, bytes);
    if (bytes > 0) stream->_IO_write_ptr = stream->_IO_write_base;
    if (held) funlockfile(stream);
  }
}

}  // namespace pario::buffering
