#include "preload/beneath_stdio.hpp"

#include <dlfcn.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <array>

namespace pario::preload::beneath {

constinit thread_local const void* opener = nullptr;

/// A stream that is open, and the buffer that it has got (null: its own).
struct Given {
  std::FILE* stream = nullptr;
  struct stat file = {};
  std::byte* memory = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t delay = 0;  ///< seconds
  std::uint64_t since = 0;  ///< when it was last seen without anything waiting, ns
  bool ignores_flush = false;
};

namespace {

constinit std::array<Given, 256> all_given{};
constinit std::uint64_t lock = 0;
constinit std::atomic<std::uint32_t> known{0};  // streams in it

Given* find(const std::FILE* stream) {
  const base::SpinLock hold(lock);
  for (Given& given : all_given)
    if (given.stream == stream) return &given;
  return nullptr;
}

int mode_of(hints::StdioMode mode) { return mode == hints::StdioMode::line ? _IOLBF : _IOFBF; }

using SetBuffer = int (*)(std::FILE*, char*, int, std::size_t);
int set_buffer(std::FILE* stream, std::byte* memory, int mode, std::size_t size) {
  return real<SetBuffer, Symbol::setvbuf>()(stream, reinterpret_cast<char*>(memory), mode, size);
}

/// Streams whose bytes have waited for too long. From the writer's thread: a stream that somebody holds is looked at the next time.
void flush_waiting() {
  const std::uint64_t now = base::monotonic_ns();
  for (Given& given : all_given) {
    const base::SpinLock hold(lock);
    if (given.stream == nullptr || given.memory == nullptr || given.delay == 0 || ftrylockfile(given.stream) != 0) continue;
    if (__fpending(given.stream) == 0) given.since = now;
    if (now - given.since >= given.delay * 1'000'000'000) {
      flush_behind(given.stream);
      given.since = now;
    }
    funlockfile(given.stream);
  }
}

void enter(std::FILE* stream, const hints::StreamHints& hints, std::byte* memory, std::uint64_t bytes) {
  Given entry{stream, {}, memory, bytes, hints.delay, base::monotonic_ns(), hints.ignoreflush};
  if (base::status_of(stream->_fileno, entry.file) != 0) entry.file = {};
  const base::SpinLock hold(lock);
  for (Given& given : all_given)
    if (given.stream == nullptr) {
      known.fetch_add(1, std::memory_order_relaxed);
      given = entry;
      return;
    }
}

bool is_room() { return find(nullptr) != nullptr; }

bool is_opened_by_cxx_library() {
  Dl_info info;
  return opener != nullptr && dladdr(opener, &info) != 0 && info.dli_sname != nullptr &&
         std::string_view(info.dli_sname).starts_with("_ZNSt12__basic_file");
}

std::uint64_t buffer_size(const std::FILE* stream, hints::StreamHints hints) {
  if (hints.stdio_size != 0) return hints.stdio_size;
  stream::fill_in(hints, stream::kernel.kind(stream->_fileno));
  return hints.size;
}

/// Why that was not possible, or Reason::none.
Reason give(std::FILE* stream, const hints::StreamHints& hints) {
  if (!is_room()) return Reason::many;
  if (hints.stdio == hints::StdioMode::none) set_buffer(stream, nullptr, _IONBF, 0);
  const bool own = hints.stdio == hints::StdioMode::as_is || hints.stdio == hints::StdioMode::none;
  if (own || hints.survive) enter(stream, hints, nullptr, 0);
  if (own || hints.survive) return own ? Reason::none : Reason::survive;
  const std::uint64_t bytes = buffer_size(stream, hints);
  std::byte* memory = stream::take_memory(bytes);
  if (memory == nullptr || set_buffer(stream, memory, mode_of(hints.stdio), bytes) != 0) return Reason::memory;
  enter(stream, hints, memory, bytes);
  real<int (*)(std::FILE*), Symbol::fflush_unlocked>();  // makes it known to flush_waiting
  stream::watch(flush_waiting);
  return Reason::none;
}

/// Waits for a moment until no other thread has the stream.
bool is_held_soon(std::FILE* stream) {
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
  if (path != nullptr) leave(AT_FDCWD, path, Reason::stdio);
}

void after_stream_open(const char* path, std::FILE* stream) {
  if (stream == nullptr || path == nullptr || !wanted()) return;
  const base::SavedErrno saved;
  if (Given* old = known_as(stream)) take_back(old);  // of before freopen
  const base::Path name(AT_FDCWD, path);
  if (!name.known()) return;
  if (is_opened_by_cxx_library()) {
    const long flags = base::system_call(SYS_fcntl, stream->_fileno, F_GETFL);
    return beneath::enter(stream->_fileno, static_cast<int>(flags), name.view(), trace::ticks());
  }
  const Wished wished = wished_of(name.view());
  if (wished.specification.empty()) return;
  const Reason reason = give(stream, wished.hints);
  stream::note(origin_of(wished, trace::Layer::stdio, name.view(), stream->_fileno), wished.hints, reason);
}

Given* known_as(const std::FILE* stream) { return stream == nullptr ? nullptr : find(stream); }

Given* given_to(const std::FILE* stream) {
  Given* found = known_as(stream);
  return found == nullptr || found->memory == nullptr ? nullptr : found;
}

bool is_open_as_stream(int descriptor) {
  struct stat file;
  if (known.load(std::memory_order_relaxed) == 0 || base::status_of(descriptor, file) != 0) return false;
  const base::SpinLock hold(lock);
  for (const Given& given : all_given)
    if (given.stream != nullptr && given.file.st_dev == file.st_dev && given.file.st_ino == file.st_ino) return true;
  return false;
}

void prepare_closing(Given* given) {
  if (given == nullptr) return;
  const base::SpinLock hold(lock);
  given->delay = 0;
}

void take_back(Given* given) {
  if (given == nullptr) return;
  const base::SpinLock hold(lock);
  if (given->memory != nullptr) stream::give_back_memory(given->memory, given->bytes);
  *given = {};
  known.fetch_sub(1, std::memory_order_relaxed);
}

bool flush_behind(std::FILE* stream) {
  flockfile(stream);
  const std::size_t bytes = __fpending(stream);
  const bool good = next<Symbol::fflush_unlocked, int>(stream) == 0;
  funlockfile(stream);
  if (good) return true;
  const base::SavedErrno saved;
  base::Text<640> text;
  text.add(base::Path(stream->_fileno).view()).add(": ").add(bytes).add(" bytes, written by the program, did not reach the file: ");
  stream::tell(text.add(base::errno_name(errno)).view());
  return false;
}

bool ignores_flush(std::FILE* stream) {
  const Given* given = given_to(stream);
  return given != nullptr && given->ignores_flush;
}

void prepare_standard_streams() {
  const struct {
    std::string_view name;
    std::FILE* stream;
  } streams[] = {{"%stdin", stdin}, {"%stdout", stdout}, {"%stderr", stderr}};
  for (const auto& [name, stream] : streams)
    if (const Wished wished = wished_of(name); !wished.specification.empty() && isatty(fileno(stream)) == 0) give(stream, wished.hints);
}

void rescue_streams() {
  for (const Given& given : all_given) {
    std::FILE* stream = given.stream;
    if (stream == nullptr || given.memory == nullptr) continue;
    const bool held = is_held_soon(stream);  // another thread may be writing them just now
    const std::ptrdiff_t bytes = stream->_IO_write_ptr - stream->_IO_write_base;
    if (bytes > 0) base::system_call(SYS_write, stream->_fileno, stream->_IO_write_base, bytes);
    if (bytes > 0) stream->_IO_write_ptr = stream->_IO_write_base;
    if (held) funlockfile(stream);
  }
}

}  // namespace pario::preload::beneath
