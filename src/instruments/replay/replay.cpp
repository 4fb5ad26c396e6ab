#include "instruments/replay/replay.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "core/base/sleep.hpp"

namespace pario::replay {

namespace {

constexpr mode_t kMode = 0644;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kPatience = 60 * kSecond, kNap = 1'000'000;
constexpr std::uint64_t kSpinNs =
    100'000;  // nanoseconds at the end of a pause: the scheduler is less precise

struct Slot {
  int descriptor = -1;
  std::FILE* stream = nullptr;
  std::vector<std::vector<char>> buffers = {};  ///< of the stream, which uses the last one
  Word file = 0;
  bool line_buffered = false;  ///< the stream
};

/// Keeps the buffers of open streams until the process ends, after all destructors.
void keep_buffers(std::vector<std::vector<char>> buffers) {
  static auto* const kept = new std::vector<std::vector<std::vector<char>>>;
  kept->push_back(std::move(buffers));
}

void pause(std::uint64_t nanoseconds) {
  const std::uint64_t end = base::monotonic_ns() + nanoseconds;
  if (nanoseconds > kSpinNs) base::sleep_until_ns(end - kSpinNs);
  while (base::monotonic_ns() < end) continue;
}

/// Allocates touched memory without zeros: file systems may treat zeros specially, and printf ends
/// at a zero.
std::byte* make_buffer(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const buffer = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; i < bytes; ++i)
    buffer[i] = static_cast<std::byte>('0' + (i * 2654435761u >> 7) % 75);
  return buffer;
}

const char* mode_of(std::int64_t flags) {
  const bool update = (flags & O_ACCMODE) == O_RDWR;
  if ((flags & O_APPEND) != 0) return update ? "a+" : "a";
  if ((flags & O_TRUNC) != 0) return update ? "w+" : "w";
  return update ? "r+" : (flags & O_ACCMODE) == O_WRONLY ? "r+" : "r";
}

}  // namespace

struct Player::State {
  std::vector<std::string> paths;
  std::vector<Slot> slots;
  std::size_t size;
  std::byte* buffer;
  Mpi mpi = {};

  const char* path(const Operation& op) const { return paths[op.path].c_str(); }
  Slot& slot(const Operation& op) { return slots[op.slot]; }
};

namespace {

using State = Player::State;

long set_descriptor(Slot& slot, int descriptor) { return slot.descriptor = descriptor; }

long set_stream(Slot& slot, std::FILE* stream) {
  slot.stream = stream;
  return stream == nullptr ? -1 : 0;
}

/// Bytes to request, at least one: a read that returned nothing requested some.
std::size_t bytes_to_read(const Operation& op) {
  return static_cast<std::size_t>(std::max<std::int64_t>(op.length, 1));
}
std::size_t bytes_to_write(const Operation& op) {
  return static_cast<std::size_t>(std::max<std::int64_t>(op.length, 0));
}

/// Sets errno from a result that is a negative errno.
long set_errno(long result) {
  if (result < 0) errno = static_cast<int>(-result);
  return result;
}

long stream_result(Slot& slot, std::size_t moved) {
  return std::ferror(slot.stream) != 0 ? -1 : static_cast<long>(moved);
}

/// Repeats a call while a file that existed in the run is missing: another process creates it.
/// Waits by system calls, which tracers do not count.
template <class Call>
long call_on_existing(const State& state, const Operation& op, Call call) {
  long result = call();
  if (result >= 0 || errno != ENOENT || op.may_fail != 0) return result;
  const std::uint64_t latest = base::monotonic_ns() + kPatience;
  while (base::system_call(SYS_faccessat, AT_FDCWD, reinterpret_cast<long>(state.path(op)), F_OK) <
             0 &&
         base::monotonic_ns() < latest)
    base::sleep_ns(kNap);
  return call();
}

template <class Call>
long repeat(const Operation& op, Call call) {
  for (std::int64_t i = 0; i < op.length; ++i) call();
  return op.length;
}

/// Memory for the statuses of every MPI.
using Status = std::byte[256];

long mpi_result(int result) {
  if (result == 0) return 0;  // MPI_SUCCESS of every MPI
  errno = EIO;
  return -1;
}

// Defines one function per verb, which returns the result of the call; negative: it failed.
#define PLAY(verb) long play_##verb([[maybe_unused]] State& state, const Operation& op)

PLAY(attach) {
  const long made = base::system_call(SYS_openat, AT_FDCWD, reinterpret_cast<long>(state.path(op)),
                                      static_cast<long>(op.offset), kMode);
  return set_descriptor(state.slot(op), static_cast<int>(set_errno(made)));
}
PLAY(open) {
  return call_on_existing(state, op, [&] {
    return set_descriptor(state.slot(op),
                          ::open(state.path(op), static_cast<int>(op.offset), kMode));
  });
}
PLAY(close) { return ::close(state.slot(op).descriptor); }
PLAY(dup) { return set_descriptor(state.slot(op), ::dup(state.slots[op.other].descriptor)); }
PLAY(read) { return ::read(state.slot(op).descriptor, state.buffer, bytes_to_read(op)); }
PLAY(write) { return ::write(state.slot(op).descriptor, state.buffer, bytes_to_write(op)); }
PLAY(pread) {
  return ::pread(state.slot(op).descriptor, state.buffer, bytes_to_read(op), op.offset);
}
PLAY(pwrite) {
  return ::pwrite(state.slot(op).descriptor, state.buffer, bytes_to_write(op), op.offset);
}
PLAY(lseek) { return ::lseek(state.slot(op).descriptor, op.offset, SEEK_SET); }
PLAY(lseek_end) { return ::lseek(state.slot(op).descriptor, 0, SEEK_END); }
PLAY(fstat) {
  struct stat status = {};
  return ::fstat(state.slot(op).descriptor, &status);
}
PLAY(fsync) { return ::fsync(state.slot(op).descriptor); }
PLAY(fdatasync) { return ::fdatasync(state.slot(op).descriptor); }
PLAY(ftruncate) { return ::ftruncate(state.slot(op).descriptor, op.offset); }
PLAY(posix_fallocate) {
  return set_errno(-::posix_fallocate(state.slot(op).descriptor, op.offset, op.length));
}
PLAY(stat) {
  struct stat status = {};
  return call_on_existing(state, op,
                          [&] { return static_cast<long>(::stat(state.path(op), &status)); });
}
PLAY(access) { return ::access(state.path(op), F_OK); }
PLAY(unlink) { return ::unlink(state.path(op)); }
PLAY(fopen) {
  return call_on_existing(state, op, [&] {
    return set_stream(state.slot(op), std::fopen(state.path(op), mode_of(op.offset)));
  });
}
PLAY(fdopen) {
  return set_stream(state.slot(op), ::fdopen(state.slots[op.other].descriptor, mode_of(op.offset)));
}
PLAY(fclose) {
  const int result = std::fclose(state.slot(op).stream);
  state.slot(op) = {};
  return result;
}
/// Calls a function that writes `length` bytes of the buffer to the slot's stream. If that is
/// line-buffered, they end with a new line, as those of programs that choose this mode; a single
/// character does not.
template <class Call>
long write_text(State& state, const Operation& op, Call call) {
  const std::size_t length = bytes_to_write(op);
  if (!state.slot(op).line_buffered || length < 2) return call(length);
  std::byte& last = state.buffer[length - 1];
  const std::byte kept = std::exchange(last, std::byte{'\n'});
  const long result = call(length);
  last = kept;
  return result;
}

PLAY(setvbuf) {
  state.slot(op).line_buffered = op.other == _IOLBF;
  std::vector<char>& buffer = state.slot(op).buffers.emplace_back(bytes_to_write(op));
  return -std::setvbuf(state.slot(op).stream, buffer.data(), static_cast<int>(op.other),
                       buffer.size());
}
PLAY(fread) {
  return stream_result(state.slot(op),
                       std::fread(state.buffer, 1, bytes_to_read(op), state.slot(op).stream));
}
PLAY(fwrite) {
  return write_text(state, op, [&](std::size_t length) {
    return stream_result(state.slot(op),
                         std::fwrite(state.buffer, 1, length, state.slot(op).stream));
  });
}
PLAY(fprintf) {
  return write_text(state, op, [&](std::size_t length) -> long {
    return std::fprintf(state.slot(op).stream, "%.*s", static_cast<int>(length),
                        reinterpret_cast<const char*>(state.buffer));
  });
}
PLAY(fgetc) {
  return repeat(op, [stream = state.slot(op).stream] { return std::fgetc(stream); });
}
PLAY(fputc) {
  return repeat(op, [stream = state.slot(op).stream] { return std::fputc('p', stream); });
}
PLAY(ungetc) { return std::ungetc('p', state.slot(op).stream); }
PLAY(fseeko) { return ::fseeko(state.slot(op).stream, op.offset, SEEK_SET); }
PLAY(ftello) { return ::ftello(state.slot(op).stream) < 0 ? -1 : 0; }
PLAY(fflush) { return std::fflush(state.slot(op).stream); }
PLAY(mpi_transfer_at) {
  using Call =
      int (*)(Word file, std::int64_t offset, void* buffer, int count, Word type, void* status);
  const auto call = reinterpret_cast<Call>(state.mpi.functions[op.other]);
  alignas(16) Status status;
  return mpi_result(call(state.slot(op).file, op.offset, state.buffer,
                         static_cast<int>(bytes_to_write(op)), state.mpi.byte, status));
}
PLAY(mpi_transfer) {
  using Call = int (*)(Word file, void* buffer, int count, Word type, void* status);
  const auto call = reinterpret_cast<Call>(state.mpi.functions[op.other]);
  alignas(16) Status status;
  return mpi_result(call(state.slot(op).file, state.buffer, static_cast<int>(bytes_to_write(op)),
                         state.mpi.byte, status));
}

#undef PLAY

struct Row {
  const char* name;
  long (*play)(State&, const Operation&);
};
constexpr Row kVerbs[] = {
#define PARIO_VERB(name) {#name, play_##name},
#include "instruments/replay/verbs.def"
#undef PARIO_VERB
};

base::Error failure(const State& state, const Operation& op) {
  const auto begin = static_cast<std::uint64_t>(std::max<std::int64_t>(op.offset, 0));
  const bool extent =
      op.verb == Verb::pread || op.verb == Verb::pwrite || op.verb == Verb::mpi_transfer_at;
  return {.number = errno,
          .operation = kVerbs[static_cast<std::size_t>(op.verb)].name,
          .path = state.paths[op.path],
          .where = extent ? base::Extent{begin, begin + static_cast<std::uint64_t>(op.length)}
                          : base::Extent{}};
}

}  // namespace

Player::Player(std::vector<std::string> paths, std::size_t slots, std::size_t largest)
    : state_(std::make_unique<State>(State{std::move(paths), std::vector<Slot>(slots), largest + 1,
                                           make_buffer(largest + 1)})) {}

Player::~Player() {
  for (Slot& slot : state_->slots)
    if (slot.stream != nullptr) keep_buffers(std::move(slot.buffers));
  if (state_->buffer != nullptr) ::munmap(state_->buffer, state_->size);
}

void Player::set_mpi(Mpi mpi) { state_->mpi = std::move(mpi); }

void Player::set_file(std::size_t slot, Word file) { state_->slots[slot].file = file; }

base::Status Player::play(std::span<const Operation> operations, bool with_pauses) {
  if (state_->buffer == nullptr)
    return base::Error{
        .number = ENOMEM, .operation = "mmap", .detail = "a buffer for the largest call"};
  for (const Operation& op : operations) {
    if (with_pauses && op.pause != 0) pause(op.pause);
    if (kVerbs[static_cast<std::size_t>(op.verb)].play(*state_, op) < 0 && op.may_fail == 0)
      return failure(*state_, op);
  }
  return {};
}

}  // namespace pario::replay
