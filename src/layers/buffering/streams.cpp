#include "layers/buffering/streams.hpp"

#include <dlfcn.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <array>

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
};

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
  StreamEntry added{stream,           {}, memory, bytes, hints.delay, base::monotonic_ns(),
                    hints.ignoreflush};
  if (base::status_of(stream->_fileno, added.file) != 0) added.file = {};
  const base::SpinLock hold(lock);
  for (StreamEntry& entry : entries)
    if (entry.stream == nullptr) {
      used_entries.fetch_add(1, std::memory_order_relaxed);
      entry = added;
      return;
    }
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
    if (entry.stream != nullptr && entry.file.st_dev == file.st_dev &&
        entry.file.st_ino == file.st_ino)
      return true;
  return false;
}

void stop_periodic_flush(StreamEntry* entry) {
  if (entry == nullptr) return;
  const base::SpinLock hold(lock);
  entry->delay = 0;
}

void remove_entry(StreamEntry* entry) {
  if (entry == nullptr) return;
  const base::SpinLock hold(lock);
  if (entry->memory != nullptr) buffers::release_memory(entry->memory, entry->bytes);
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

void set_standard_stream_buffers() {
  const struct {
    std::string_view name;
    std::FILE* stream;
  } streams[] = {{"%stdin", stdin}, {"%stdout", stdout}, {"%stderr", stderr}};
  for (const auto& [name, stream] : streams)
    if (const Setting setting = find_setting(name);
        !setting.specification.empty() && isatty(fileno(stream)) == 0)
      apply_setting(stream, setting.hints);
}

void flush_streams() {
  for (const StreamEntry& entry : entries) {
    std::FILE* stream = entry.stream;
    if (stream == nullptr || entry.memory == nullptr || ftrylockfile(stream) != 0) continue;
    if (__fpending(stream) != 0) flush_stream(stream);
    funlockfile(stream);
  }
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
