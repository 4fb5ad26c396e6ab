// The buffers of a file, each a window of it: found, filled, handed to the writer, written.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "stream/file.hpp"
#include "stream/memory.hpp"
#include "stream/writer.hpp"

namespace pario::stream {

/// Null: one has to be written first.
Buffer* File::window_now(Handle& handle, std::uint64_t begin) {
  if (Buffer* found = find(begin)) return found->state == Buffer::State::filling ? found : nullptr;
  if (Buffer* buffer = unused()) return &fill(*buffer, handle, begin);
  if (!any(Buffer::State::queued)) hand_over(*oldest());
  return nullptr;
}

/// The buffer that `bytes` more are appended to; waits for one.
Buffer& File::end_of_file(Lock& lock, Handle& handle, std::uint64_t bytes) {
  for (;;) {
    if (last_ != nullptr && last_->state == Buffer::State::filling) {
      if (last_->written.end() + bytes <= hints_.size) return *last_;
      hand_over(*last_);
    }
    if (Buffer* buffer = unused()) return fill(*buffer, handle, handle.offset);
    changed_.wait(lock.lock_);
  }
}

Buffer* File::find(std::uint64_t begin) {
  for (Buffer& buffer : std::span(buffers_, count_))
    if (buffer.dirty() && buffer.begin == begin) return &buffer;
  return nullptr;
}

Buffer& File::fill(Buffer& buffer, Handle& handle, std::uint64_t begin) {
  limit_ = file_size_limit();  // now and then is enough
  buffer.file = this;
  buffer.through = &handle;
  buffer.begin = begin;
  buffer.since = base::monotonic_ns();
  buffer.written.clear();
  in_this_order();
  buffer.state = Buffer::State::filling;
  ++statistics_.buffers;
  return *(last_ = &buffer);
}

Buffer* File::unused() {
  for (Buffer& buffer : std::span(buffers_, count_)) {
    if (buffer.state != Buffer::State::empty) continue;
    if (buffer.memory == nullptr) buffer.memory = whole::take_memory(hints_.size);
    if (buffer.memory != nullptr) return &buffer;
    starved_ = true;
  }
  return nullptr;
}

Buffer* File::oldest() {
  Buffer* best = nullptr;
  for (Buffer& buffer : std::span(buffers_, count_))
    if (buffer.state == Buffer::State::filling && (best == nullptr || buffer.since < best->since)) best = &buffer;
  return best;
}

bool File::any(Buffer::State state) const {
  return std::ranges::any_of(std::span(buffers_, count_), [&](const Buffer& buffer) { return buffer.state == state; });
}

std::uint64_t File::dirty_end() const {
  std::uint64_t end = 0;
  for (const Buffer& buffer : std::span(buffers_, count_))
    if (buffer.dirty()) end = std::max(end, buffer.begin + buffer.written.end());
  return end;
}

void File::hand_over(Buffer& buffer) {
  buffer.hand.store(Buffer::Hand::none, std::memory_order_relaxed);
  buffer.state = Buffer::State::queued;
  if (hints_.sync || !writer::push(buffer)) return write_here(buffer);
  ++statistics_.preflushes;
}

void File::hand_over_all() {
  for (Buffer& buffer : std::span(buffers_, count_))
    if (buffer.state == Buffer::State::filling) hand_over(buffer);
}

/// Waits for what the writer has, and writes the rest here: whoever flushes waits anyway.
void File::drain(Lock& lock) {
  while (any(Buffer::State::queued)) changed_.wait(lock.lock_);
  for (Buffer& buffer : std::span(buffers_, count_))
    if (buffer.state == Buffer::State::filling) write_here(buffer);
  last_ = nullptr;
}

void File::write_here(Buffer& buffer) {
  take_in(write_out(buffer));
  buffer.state = Buffer::State::empty;
}

void File::finish(Buffer& buffer) {
  if (buffer.state == Buffer::State::reading) return finish_ahead(buffer);
  if (buffer.hand.exchange(Buffer::Hand::writer, std::memory_order_acq_rel) == Buffer::Hand::rescue) return;
  const Written written = write_out(buffer);
  buffer.hand.store(Buffer::Hand::written, std::memory_order_release);
  const Lock lock(*this);
  take_in(written);
  buffer.state = Buffer::State::empty;
  changed_.notify_all();
}

void File::hand_over_older_than(std::uint64_t limit) {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !used() || hints_.delay == 0) return;
  for (Buffer& buffer : std::span(buffers_, count_))
    if (buffer.state == Buffer::State::filling && buffer.since + hints_.delay * 1'000'000'000 < limit) hand_over(buffer);
}

Written File::write_out(const Buffer& buffer) const {
  Written sum;
  struct stat now;
  if (kernel.status(buffer.through->descriptor, now) != 0 || now.st_dev != device_ || now.st_ino != inode_)
    sum.error = -EBADF;  // closed behind our back: it may be another file now
  for (const Runs::Run run : buffer.written.all()) {
    if (sum.error == 0) write_run(buffer, run, sum);
    if (sum.error != 0) say_lost(sum.error, {buffer.begin + run.begin, buffer.begin + run.end});
  }
  store(buffer);
  return sum;
}

/// Now and then the kernel is told to begin with what it was given.
void File::store(const Buffer& buffer) const {
  const std::uint64_t begin = base::round_down(buffer.begin, hints_.writeback), end = buffer.begin + buffer.written.end();
  if (end - begin >= hints_.writeback) kernel.store(buffer.through->descriptor, begin, end - begin);
}

void File::write_run(const Buffer& buffer, Runs::Run run, Written& sum) const {
  while (run.begin < run.end) {
    const std::uint64_t start = trace::ticks();
    iovec piece{buffer.memory + run.begin, run.end - run.begin};
    const int descriptor = buffer.through->descriptor;
    const long result = appending_ ? kernel.write(descriptor, piece.iov_base, piece.iov_len)
                                   : kernel.pwritev(descriptor, &piece, 1, buffer.begin + run.begin);
    if (result == -EINTR) continue;
    count_call(sum.calls, result > 0 ? static_cast<std::uint64_t>(result) : 0, start);
    if (result <= 0) {
      sum.error = result == 0 ? -EIO : result;
      return;
    }
    run.begin += static_cast<std::uint32_t>(result);
  }
}

void File::take_in(const Written& what) {
  statistics_.system_write.calls += what.calls.calls;
  statistics_.system_write.bytes += what.calls.bytes;
  statistics_.system_write.ticks += what.calls.ticks;
  if (what.error != 0) error_ = what.error;
}

void File::say_lost(long error, base::Extent where) const {
  base::Text<1024> text;
  text.add(path()).add(": bytes ").add(where.begin).add(" to ").add(where.end).add(", written by the program, did not reach the file: ");
  text.add(base::errno_name(static_cast<int>(-error)));
  tell(text.view());
}

long File::take_error() { return std::exchange(error_, 0); }

}  // namespace pario::stream
