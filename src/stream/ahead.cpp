// Read-ahead: windows of the file that are read as a whole, the next ones in the background. It begins when a reader has been sequential
// for a while, and ends when windows are thrown away of which little was asked for.
#include <algorithm>
#include <cstring>

#include "stream/file.hpp"
#include "stream/writer.hpp"

namespace pario::stream {
namespace {

constexpr std::uint32_t kSequentialReads = 2;  // before reading ahead begins
constexpr std::uint32_t kWastedWindows = 3;    // in succession, before it ends

}  // namespace

bool File::read_ahead(Lock& lock, Handle& handle, const iovec& piece, std::uint64_t offset) {
  handle.sequential_reads = offset == handle.next_read ? handle.sequential_reads + 1 : 0;
  const std::uint64_t begin = base::round_down(offset, hints_.size), end = offset - begin + piece.iov_len;
  const bool helps = hints_.prefetch != 0 && wasted_windows_ < kWastedWindows && piece.iov_len != 0 && end <= hints_.size &&
                     piece.iov_len <= hints_.size / 2 && handle.sequential_reads >= kSequentialReads && dirty_end() == 0;
  if (!helps) return false;
  Buffer* buffer = ahead_window(lock, handle, begin);
  if (buffer == nullptr || !buffer->written.contains(static_cast<std::uint32_t>(offset - begin), static_cast<std::uint32_t>(end)))
    return false;  // the file ends here, or the kernel knows better
  std::memcpy(piece.iov_base, buffer->memory + (offset - begin), piece.iov_len);
  buffer->asked += piece.iov_len;
  if (buffer->written.end() == hints_.size) fetch_next(handle, begin);
  return true;
}

/// The window, with its bytes; null: no buffer can be had.
Buffer* File::ahead_window(Lock& lock, Handle& handle, std::uint64_t begin) {
  Buffer* found = find_ahead(begin);
  for (; found != nullptr && found->state == Buffer::State::reading; found = find_ahead(begin)) changed_.wait(lock.lock_);
  if (found != nullptr) return found;
  Buffer* buffer = begin_ahead(handle, begin, begin);
  if (buffer == nullptr) return nullptr;
  fetch(*buffer, statistics_.system_read);
  buffer->state = Buffer::State::ready;
  return buffer;
}

void File::fetch_next(Handle& handle, std::uint64_t begin) {
  if (hints_.sync) return;
  for (std::uint64_t next = begin + hints_.size; next <= begin + hints_.prefetch * hints_.size; next += hints_.size) {
    if (find_ahead(next) != nullptr) continue;
    Buffer* buffer = begin_ahead(handle, next, begin);
    if (buffer == nullptr) return;
    buffer->state = Buffer::State::reading;
    ++statistics_.prefetches;
    if (!writer::push_read(*buffer, hints_.readers)) drop(*buffer);
  }
}

Buffer* File::find_ahead(std::uint64_t begin) {
  for (Buffer& buffer : std::span(buffers_, count_))
    if (buffer.ahead() && buffer.begin == begin) return &buffer;
  return nullptr;
}

/// A buffer for a window, whose state is the caller's to set. The window furthest back gives way, but not the one at `kept`.
Buffer* File::begin_ahead(Handle& handle, std::uint64_t begin, std::uint64_t kept) {
  Buffer* buffer = unused();
  if (buffer == nullptr) {
    for (Buffer& other : std::span(buffers_, count_))
      if (other.state == Buffer::State::ready && other.begin != kept && (buffer == nullptr || other.begin < buffer->begin)) buffer = &other;
    if (buffer == nullptr) return nullptr;
    drop(*buffer);
  }
  ++ahead_;
  buffer->file = this;
  buffer->through = &handle;
  buffer->begin = begin;
  buffer->asked = 0;
  buffer->written.clear();
  ++statistics_.buffers;
  return buffer;
}

void File::fetch(Buffer& buffer, Statistics::Calls& calls) const {
  const std::uint64_t start = trace::ticks();
  const iovec piece{buffer.memory, hints_.size};
  const long result = kernel.preadv(buffer.through->descriptor, &piece, 1, buffer.begin);
  count_call(calls, result > 0 ? static_cast<std::uint64_t>(result) : 0, start);
  if (result > 0) buffer.written.add(0, static_cast<std::uint32_t>(result));
}

void File::finish_ahead(Buffer& buffer) {
  Statistics::Calls calls;
  fetch(buffer, calls);
  const Lock lock(*this);
  statistics_.system_read.calls += calls.calls;
  statistics_.system_read.bytes += calls.bytes;
  buffer.state = Buffer::State::ready;
  changed_.notify_all();
}

void File::drop(Buffer& buffer) {
  --ahead_;
  const std::uint64_t there = buffer.written.bytes(), wasted = there - std::min(there, buffer.asked);
  statistics_.wasted += wasted;
  wasted_windows_ = wasted > there / 2 ? wasted_windows_ + 1 : 0;
  buffer.state = Buffer::State::empty;
  buffer.written.clear();
}

void File::drop_ahead(Lock& lock) {
  if (ahead_ == 0) [[likely]]
    return;
  while (any(Buffer::State::reading)) changed_.wait(lock.lock_);
  for (Buffer& buffer : std::span(buffers_, count_))
    if (buffer.state == Buffer::State::ready) drop(buffer);
}

}  // namespace pario::stream
