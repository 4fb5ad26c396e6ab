#include "layers/buffers/read_ahead.hpp"

#include <algorithm>

#include "layers/buffers/background.hpp"
#include "layers/buffers/file_stamps.hpp"
#include "layers/buffers/pieces.hpp"
#include "layers/buffers/statistics.hpp"

namespace pario::buffers {
namespace {

constexpr std::uint32_t kSequentialReads = 2;  // before read-ahead begins
constexpr std::uint32_t kWastedWindows = 3;    // in succession, before it ends

}  // namespace

void ReadAhead::start(FileContext& context) {
  context_ = &context;
  wasted_windows_ = 0;
}

bool ReadAhead::read(FileLock& lock, Handle& handle, std::span<const iovec> pieces,
                     std::uint64_t offset) {
  const std::uint64_t bytes = bytes_of(pieces);
  if (!detect_stream(handle, offset, bytes)) return false;
  if (windows_ != 0 && !is_valid(handle)) discard_windows(lock);
  const std::uint64_t size = context_->windows.size(), begin = base::round_down(offset, size);
  const auto at = static_cast<std::uint32_t>(offset - begin);
  Buffer* buffer = get_window(lock, handle, begin);
  if (buffer == nullptr || !buffer->valid.contains(at, at + static_cast<std::uint32_t>(bytes)))
    return false;  // the end of the file, or an error: the kernel answers the call
  scatter({buffer->memory + at, bytes}, pieces);
  buffer->bytes_used += bytes;
  if (buffer->valid.end() == size && !context_->hints.sync) prefetch(handle, begin);
  return true;
}

/// False if the file may have changed since its windows were read. Looks at most every 100
/// milliseconds.
bool ReadAhead::is_valid(const Handle& handle) {
  const std::uint64_t now = read_clock(CLOCK_MONOTONIC_COARSE);
  if (now - checked_ns_ < kValidNs) return true;
  checked_ns_ = now;
  struct stat file;
  return is_file_known_ && system_calls.status(handle.descriptor, file) == 0 &&
         is_unchanged(file, file_);
}

/// A change within a tick of the file system's clock, a few milliseconds, is not noticed on kernels
/// before Linux 6.13; one within the same second is, where times are whole seconds.
void ReadAhead::remember_file(const Handle& handle) {
  checked_ns_ = read_clock(CLOCK_MONOTONIC_COARSE);
  is_file_known_ = system_calls.status(handle.descriptor, file_) == 0 &&
                   (has_fine_stamps(file_) || has_reliable_stamps(file_));
}

/// True if the handle reads sequentially, and if the read is small and lies in one window.
bool ReadAhead::detect_stream(Handle& handle, std::uint64_t offset, std::uint64_t bytes) {
  handle.sequential_reads = offset == handle.next_read ? handle.sequential_reads + 1 : 0;
  const std::uint64_t size = context_->windows.size();
  const std::uint64_t end = offset - base::round_down(offset, size) + bytes;
  return context_->hints.prefetch != 0 && wasted_windows_ < kWastedWindows && bytes != 0 &&
         end <= size && bytes <= size / 2 && handle.sequential_reads >= kSequentialReads &&
         context_->windows.dirty_end() == 0;
}

/// Returns the window after waiting for it or reading it now; null if there is no buffer for it.
Buffer* ReadAhead::get_window(FileLock& lock, Handle& handle, std::uint64_t begin) {
  Buffer* found = context_->windows.find_read_ahead(begin);
  for (; found != nullptr && found->state == Buffer::State::reading;
       found = context_->windows.find_read_ahead(begin))
    lock.wait();
  if (found != nullptr) return found;
  Buffer* buffer = start_window(handle, begin, begin);
  if (buffer == nullptr) return nullptr;
  const Statistics::Calls calls = fetch(*buffer);
  context_->statistics.system_read.ticks += calls.ticks;
  finish_fetch(*buffer, calls);
  return buffer;
}

/// Starts to read the windows after `begin`, as many as the hints say.
void ReadAhead::prefetch(Handle& handle, std::uint64_t begin) {
  const hints::StreamHints& hints = context_->hints;
  const std::uint64_t last = begin + hints.prefetch * hints.size;
  for (std::uint64_t next = begin + hints.size; next <= last; next += hints.size) {
    if (context_->windows.find_read_ahead(next) != nullptr) continue;
    Buffer* buffer = start_window(handle, next, begin);
    if (buffer == nullptr) return;
    buffer->state = Buffer::State::reading;
    ++context_->statistics.prefetches;
    if (!background::enqueue_read(*buffer, hints.readers)) discard(*buffer);
  }
}

/// Returns a buffer for a window, whose state the caller sets. If necessary it evicts the first
/// window in the file, but not the reader's current one.
Buffer* ReadAhead::start_window(Handle& handle, std::uint64_t begin, std::uint64_t current) {
  Buffer* buffer = context_->windows.find_empty();
  if (buffer == nullptr) buffer = evict_first(current);
  if (buffer == nullptr) return nullptr;
  if (windows_++ == 0) remember_file(handle);
  buffer->file = context_->file;
  buffer->handle = &handle;
  buffer->begin = begin;
  buffer->bytes_used = 0;
  buffer->valid.clear();
  ++context_->statistics.buffers;
  return buffer;
}

Buffer* ReadAhead::evict_first(std::uint64_t current) {
  Buffer* first = nullptr;
  for (Buffer& buffer : context_->windows.all())
    if (buffer.state == Buffer::State::ready && buffer.begin != current &&
        (first == nullptr || buffer.begin < first->begin))
      first = &buffer;
  if (first != nullptr) discard(*first);
  return first;
}

Statistics::Calls ReadAhead::fetch(Buffer& buffer) const {
  return context_->backing.read(buffer, context_->windows.size());
}

/// Counts a fetch in the background without its ticks: the program does not wait for it.
void ReadAhead::finish_fetch(Buffer& buffer, const Statistics::Calls& calls) {
  context_->statistics.system_read.calls += calls.calls;
  context_->statistics.system_read.bytes += calls.bytes;
  buffer.state = Buffer::State::ready;
}

void ReadAhead::discard(Buffer& buffer) {
  --windows_;
  const std::uint64_t fetched = buffer.valid.total_bytes();
  const std::uint64_t wasted = fetched - std::min(fetched, buffer.bytes_used);
  context_->statistics.wasted += wasted;
  wasted_windows_ = wasted > fetched / 2 ? wasted_windows_ + 1 : 0;
  buffer.state = Buffer::State::empty;
  buffer.valid.clear();
}

void ReadAhead::discard_windows(FileLock& lock) {
  while (context_->windows.has(Buffer::State::reading)) lock.wait();
  for (Buffer& buffer : context_->windows.all())
    if (buffer.state == Buffer::State::ready) discard(buffer);
}

}  // namespace pario::buffers
