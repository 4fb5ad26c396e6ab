#include "layers/buffers/write_behind.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/sleep.hpp"
#include "layers/buffers/background.hpp"
#include "layers/buffers/blocked_signals.hpp"
#include "layers/buffers/pieces.hpp"

namespace pario::buffers {
namespace {

/// Time for which a signal handler that ends the process waits for the background thread.
constexpr std::uint64_t kSignalPatienceNs = 5'000'000'000;

}  // namespace

void WriteBehind::start(FileContext& context) {
  context_ = &context;
  restart();
}

void WriteBehind::restart() {
  last_ = nullptr;
  appending_ = false;
}

// ---- writes of the program

long WriteBehind::write(FileLock& lock, Handle& handle, std::span<const iovec> pieces,
                        StartOffset at) {
  const std::uint64_t bytes = bytes_of(pieces);
  if (handle.appends != appending_ || (appending_ && last_ != nullptr && last_->handle != &handle))
      [[unlikely]] {
    drain(lock);
    appending_ = handle.appends;
  }
  const std::uint64_t begin = at.value_or(handle.offset);
  // There will be nothing to join it with.
  const bool alone = handle.writes_once && handle.write_calls == 0;
  ++handle.write_calls;
  if (!alone && last_ == nullptr) size_limit_ = file_size_limit();
  if (alone || bytes >= context_->windows.size() || !is_within_limit(begin, bytes) ||
      (handle.appends && (at || context_->hints.survive)))
    return write_through(lock, handle, pieces, at);
  if (handle.appends) return append(lock, handle, pieces, bytes);
  // Moves the offset before the copy: other threads may get the lock while this one waits for a
  // buffer.
  if (!at) handle.copying_from = begin;
  signal_fence();
  if (!at) handle.offset += bytes;
  std::uint64_t offset = begin;
  for (const iovec& piece : pieces) {
    copy_to_windows(lock, handle, offset,
                    {static_cast<const std::byte*>(piece.iov_base), piece.iov_len});
    offset += piece.iov_len;
  }
  signal_fence();
  handle.copying_from = Handle::kNotCopying;
  return static_cast<long>(bytes);
}

/// False for a write beyond the limit, which the kernel has to judge.
bool WriteBehind::is_within_limit(std::uint64_t offset, std::uint64_t bytes) const {
  return offset <= size_limit_ && bytes <= size_limit_ - offset;
}

long WriteBehind::write_through(FileLock& lock, Handle& handle, std::span<const iovec> pieces,
                                StartOffset at) {
  drain(lock);
  if (handle.error != 0) return context_->handles.report_error(handle);
  if (handle.appends) {
    handle.offset += bytes_of(pieces);
    handle.rewound &= static_cast<bool>(at);  // pwrite does not move the offset
    return kPass;
  }
  const std::uint64_t start = trace::ticks();
  const long result =
      system_calls.pwritev(handle.descriptor, pieces.data(), static_cast<int>(pieces.size()),
                           at.value_or(handle.offset));
  count_call(context_->statistics.system_write, result, start);
  if (result > 0 && !at) handle.offset += static_cast<std::uint64_t>(result);
  return result;
}

/// Appends to one buffer: never divides a call, because other processes may append, too.
long WriteBehind::append(FileLock& lock, Handle& handle, std::span<const iovec> pieces,
                         std::uint64_t bytes) {
  Buffer& buffer = get_append_buffer(lock, handle, bytes);
  const std::uint32_t begin = buffer.valid.end();
  gather(pieces, buffer.memory + begin);
  if (bytes != 0) buffer.valid.add(begin, begin + static_cast<std::uint32_t>(bytes));
  handle.offset += bytes;
  handle.rewound = false;
  return static_cast<long>(bytes);
}

void WriteBehind::copy_to_windows(FileLock& lock, Handle& handle, std::uint64_t offset,
                                  std::span<const std::byte> data) {
  const std::uint64_t size = context_->windows.size();
  while (!data.empty()) {
    const std::uint64_t begin = base::round_down(offset, size);
    const auto at = static_cast<std::uint32_t>(offset - begin);
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(data.size(), size - at));
    Buffer& buffer = get_window(lock, handle, begin);
    std::memcpy(buffer.memory + at, data.data(), bytes);
    // After the copy: a signal handler may write the valid bytes at any moment.
    if (!buffer.valid.add(at, at + bytes)) {
      enqueue(buffer);
      continue;
    }
    offset += bytes;
    if (handle.copying_from != Handle::kNotCopying) handle.copying_from = offset;
    if (at + bytes == size && buffer.is_full(size)) enqueue(buffer);
    data = data.subspan(bytes);
  }
}

// ---- buffers of windows

/// Waits until the window has a buffer.
Buffer& WriteBehind::get_window(FileLock& lock, Handle& handle, std::uint64_t begin) {
  if (last_ != nullptr && last_->begin == begin && last_->state == Buffer::State::filling)
      [[likely]]
    return *last_;
  for (;;) {
    if (Buffer* buffer = try_window(handle, begin)) return *(last_ = buffer);
    if (context_->windows.has(Buffer::State::queued)) lock.wait();
  }
}

/// Returns the window's buffer; null if another buffer has to be written first.
Buffer* WriteBehind::try_window(Handle& handle, std::uint64_t begin) {
  WindowCache& windows = context_->windows;
  if (Buffer* found = windows.find_dirty(begin))
    return found->state == Buffer::State::filling ? found : nullptr;
  if (Buffer* buffer = windows.find_empty()) return &start_filling(*buffer, handle, begin);
  if (!windows.has(Buffer::State::queued)) enqueue(*windows.find_oldest_filling());
  return nullptr;
}

/// Waits until a buffer has space for `bytes` more.
Buffer& WriteBehind::get_append_buffer(FileLock& lock, Handle& handle, std::uint64_t bytes) {
  for (;;) {
    if (last_ != nullptr && last_->state == Buffer::State::filling) {
      if (last_->valid.end() + bytes <= context_->windows.size()) return *last_;
      enqueue(*last_);
    }
    if (Buffer* buffer = context_->windows.find_empty())
      return start_filling(*buffer, handle, handle.offset);
    lock.wait();
  }
}

Buffer& WriteBehind::start_filling(Buffer& buffer, Handle& handle, std::uint64_t begin) {
  if (last_ != nullptr) size_limit_ = file_size_limit();  // once for each buffer is often enough
  buffer.file = context_->file;
  buffer.handle = &handle;
  buffer.begin = begin;
  buffer.dirty_since_ns = base::monotonic_ns();
  buffer.valid.clear();
  signal_fence();
  buffer.state = Buffer::State::filling;
  ++context_->statistics.buffers;
  return *(last_ = &buffer);
}

// ---- writing of dirty bytes

void WriteBehind::enqueue(Buffer& buffer) {
  buffer.writer.store(Buffer::Writer::none, std::memory_order_relaxed);
  buffer.state = Buffer::State::queued;
  if (context_->hints.sync || !background::enqueue_write(buffer)) return write_now(buffer);
  ++context_->statistics.preflushes;
}

void WriteBehind::enqueue_all() {
  for (Buffer& buffer : context_->windows.all())
    if (buffer.state == Buffer::State::filling) enqueue(buffer);
}

void WriteBehind::enqueue_expired(std::uint64_t now_ns) {
  const std::uint64_t delay_ns = context_->hints.delay * 1'000'000'000;
  if (delay_ns == 0) return;
  for (Buffer& buffer : context_->windows.all())
    if (buffer.state == Buffer::State::filling && buffer.dirty_since_ns + delay_ns < now_ns)
      enqueue(buffer);
}

void WriteBehind::drain(FileLock& lock) {
  while (context_->windows.has(Buffer::State::queued)) lock.wait();
  for (Buffer& buffer : context_->windows.all())
    if (buffer.state == Buffer::State::filling) write_now(buffer);
  last_ = nullptr;
}

void WriteBehind::write_now(Buffer& buffer) {
  if (!appending_) return finish_write(buffer, context_->backing.write(buffer, false));
  // A signal handler that ends the process would append the bytes again: it does not interrupt this
  // thread, and waits in another one.
  const BlockedSignals blocked;
  buffer.writer.store(Buffer::Writer::background, std::memory_order_relaxed);
  buffer.state = Buffer::State::queued;
  const TransferResult result = context_->backing.write(buffer, true);
  buffer.writer.store(Buffer::Writer::finished, std::memory_order_release);
  finish_write(buffer, result);
}

bool WriteBehind::write_queued(Buffer& buffer, TransferResult& result) const {
  using Writer = Buffer::Writer;
  const Writer before = buffer.writer.exchange(Writer::background, std::memory_order_acq_rel);
  if (before == Writer::signal_handler) return false;
  result = context_->backing.write(buffer, appending_);
  buffer.writer.store(Writer::finished, std::memory_order_release);
  return true;
}

void WriteBehind::finish_write(Buffer& buffer, const TransferResult& result) {
  Statistics::Calls& calls = context_->statistics.system_write;
  calls.calls += result.calls.calls;
  calls.bytes += result.calls.bytes;
  calls.ticks += result.calls.ticks;
  if (result.error != 0) context_->handles.defer_error(result.error);
  buffer.state = Buffer::State::empty;
}

void WriteBehind::flush_in_signal_handler() {
  while (Buffer* buffer = context_->windows.find_first_dirty()) {
    if (claim_in_signal_handler(*buffer)) context_->backing.write(*buffer, appending_);
    buffer->valid.clear();
  }
}

/// Claims a buffer for writing. False if the background thread writes it, and finishes in time.
bool WriteBehind::claim_in_signal_handler(Buffer& buffer) {
  using Writer = Buffer::Writer;
  if (buffer.state != Buffer::State::queued) return true;
  Writer found = Writer::none;
  if (buffer.writer.compare_exchange_strong(found, Writer::signal_handler,
                                            std::memory_order_acq_rel))
    return true;
  const std::uint64_t begin = base::monotonic_ns();
  while (buffer.writer.load(std::memory_order_acquire) == Writer::background &&
         base::monotonic_ns() - begin < kSignalPatienceNs)
    base::sleep_ns(100'000);
  return buffer.writer.load(std::memory_order_acquire) == Writer::background;
}

}  // namespace pario::buffers
