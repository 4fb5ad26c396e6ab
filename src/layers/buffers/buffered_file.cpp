#include "layers/buffers/buffered_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "layers/buffers/buffered_file_call.hpp"
#include "layers/buffers/figures.hpp"
#include "layers/buffers/pieces.hpp"

namespace pario::buffers {
namespace {

/// Makes the system call of a seek, and sets the offset of the handle to the kernel's.
long seek_in_kernel(Handle& handle, std::int64_t offset, int whence) {
  const long result = system_calls.seek(handle.descriptor, offset, whence);
  if (result >= 0) handle.offset = static_cast<std::uint64_t>(result);
  return result;
}

}  // namespace

void BufferedFile::Call::apply_signal_writes() {
  SignalWrites::Batch batch;
  file_.signal_writes_.remove_all(batch);
  for (SignalWrites::Write write; batch.next(write);) {
    if (write.handle->file != &file_) continue;
    if (file_.write_locked(lock_, *write.handle, {&write.bytes, 1}, write.at) == kPass)
      system_calls.write(write.handle->descriptor, write.bytes.iov_base, write.bytes.iov_len);
  }
}

// ---- writes

long BufferedFile::write(Handle& handle, std::span<const iovec> pieces, StartOffset at) {
  Call call(*this);
  if (!call.is_held()) [[unlikely]]
    return signal_writes_.add(handle, pieces, at);
  CallTimer timer(context_.statistics.write, context_.clock, context_.hints.verbose);
  const long result = write_locked(call.lock(), handle, pieces, at);
  timer.count(result);
  return result;
}

long BufferedFile::write_locked(FileLock& lock, Handle& handle, std::span<const iovec> pieces,
                                StartOffset at) {
  if ((!state_.active && !resume_buffering()) || !handle.writes) [[unlikely]]
    return kPass;
  if (handle.error != 0) [[unlikely]]
    return context_.handles.report_error(handle);
  read_ahead_.discard_all(lock);
  return write_behind_.write(lock, handle, pieces, at);
}

// ---- reads

long BufferedFile::read(Handle& handle, std::span<const iovec> pieces, StartOffset at) {
  Call call(*this);
  if (!call.is_held()) return -EINTR;
  if ((!state_.active && !resume_buffering()) || !handle.reads) return kPass;
  CallTimer timer(context_.statistics.read, context_.clock, context_.hints.verbose);
  if (write_behind_.is_appending() || handle.appends) write_behind_.drain(call.lock());
  if (handle.appends && !at) return apply_rewind(handle), kPass;
  // Two threads that read at one offset get different bytes.
  while (!at && handle.busy) call.lock().wait();
  if (!state_.active) return kPass;
  handle.busy |= !at;
  const long result = read_locked(call.lock(), handle, pieces, at.value_or(handle.offset));
  if (!at) {
    handle.busy = false;
    if (result > 0) handle.offset += static_cast<std::uint64_t>(result);
    call.lock().notify_all();
  }
  timer.count(result);
  return result;
}

/// Tries the copies of the file, then dirty bytes, then read-ahead; otherwise makes a system call.
long BufferedFile::read_locked(FileLock& lock, Handle& handle, std::span<const iovec> pieces,
                               std::uint64_t offset) {
  const long copied = copies_.read(handle, pieces, offset);
  if (copied != kPass) return copied;
  const std::uint64_t bytes = bytes_of(pieces);
  if (const std::byte* dirty = context_.windows.find_dirty_bytes(offset, bytes))
    return scatter({dirty, bytes}, pieces);
  if (read_ahead_.read(lock, handle, pieces, offset)) {
    handle.next_read = offset + bytes;
    return static_cast<long>(bytes);
  }
  // Writes dirty bytes behind the range, too: they determine the end of the file.
  if (context_.windows.dirty_end() > offset) write_behind_.drain(lock);
  const std::uint64_t start = trace::ticks();
  const long result = system_calls.preadv(handle.descriptor, pieces.data(),
                                          static_cast<int>(pieces.size()), offset);
  count_call(context_.statistics.system_read, result, start);
  handle.next_read = offset + static_cast<std::uint64_t>(std::max(result, 0L));
  return result;
}

// ---- offsets

long BufferedFile::seek(Handle& handle, std::int64_t offset, int whence) {
  Call call(*this);
  if (!call.is_held()) return -EINTR;
  if (!state_.active) return kPass;
  if (handle.appends) return write_behind_.drain(call.lock()), apply_rewind(handle), kPass;
  const std::optional<std::int64_t> base = find_seek_base(handle, whence);
  if (!base) {
    write_behind_.drain(call.lock());
    return seek_in_kernel(handle, offset, whence);
  }
  std::int64_t target = 0;
  if (__builtin_add_overflow(*base, offset, &target)) return -EOVERFLOW;
  // Offsets up to this one are valid; the kernel decides about others.
  const auto valid =
      static_cast<std::int64_t>(std::max(handle.offset, copies_.process_copy_size()));
  if (target < 0 || target > valid) return seek_in_kernel(handle, target, SEEK_SET);
  handle.offset = static_cast<std::uint64_t>(target);
  return target;
}

/// Returns the offset from which a seek counts; empty: only the kernel knows it.
std::optional<std::int64_t> BufferedFile::find_seek_base(const Handle& handle, int whence) {
  if (whence == SEEK_SET) return 0;
  if (whence == SEEK_CUR) return static_cast<std::int64_t>(handle.offset);
  const ProcessCopy* const copy = whence == SEEK_END ? copies_.find_valid_copy(handle) : nullptr;
  if (copy == nullptr) return std::nullopt;
  return static_cast<std::int64_t>(copy->size());
}

std::uint64_t BufferedFile::position(const Handle& handle) {
  const Call call(*this);
  return handle.offset;
}

void BufferedFile::reload_offset(Handle& handle) {
  const Call call(*this);
  if (!call.is_held() || !state_.active) return;
  seek_in_kernel(handle, 0, SEEK_CUR);
}

// ---- flushing

long BufferedFile::flush(Handle& handle) {
  Call call(*this);
  if (!call.is_held()) return 0;
  write_behind_.drain(call.lock());
  return context_.handles.report_error(handle);
}

void BufferedFile::flush_in_signal_handler() {
  context_.handles.for_each([this](Handle& handle) { drop_unfinished_write(handle); });
  write_behind_.flush_in_signal_handler();
  SignalWrites::Batch batch;
  signal_writes_.remove_all(batch);
  for (SignalWrites::Write write; batch.next(write);) write_in_signal_handler(write);
}

/// Moves the offset of a handle back to the end of the bytes that an interrupted write has copied.
void BufferedFile::drop_unfinished_write(Handle& handle) {
  const std::uint64_t reached = std::exchange(handle.copying_from, Handle::kNotCopying);
  if (reached >= handle.offset) return;
  if (context_.windows.find_dirty_bytes(reached, handle.offset - reached) == nullptr)
    handle.offset = reached;
}

void BufferedFile::write_in_signal_handler(const SignalWrites::Write& write) {
  Handle& handle = *write.handle;
  if (handle.file != this) return;
  const auto data = static_cast<const char*>(write.bytes.iov_base);
  if (handle.appends && !write.at) {
    system_calls.write(handle.descriptor, data, write.bytes.iov_len);
    return;
  }
  system_calls.pwritev(handle.descriptor, &write.bytes, 1, write.at.value_or(handle.offset));
  if (!write.at) handle.offset += write.bytes.iov_len;
}

void BufferedFile::sync_to_kernel() {
  Call call(*this);
  if (call.is_held() && state_.active) sync_locked(call.lock());
}

void BufferedFile::sync_locked(FileLock& lock) {
  write_behind_.drain(lock);
  read_ahead_.discard_all(lock);
  copies_.expire();
  context_.handles.store_offsets();
}

void BufferedFile::complete(Buffer& buffer) {
  if (buffer.state == Buffer::State::reading) {
    const Statistics::Calls calls = read_ahead_.fetch(buffer);
    FileLock lock(monitor_);
    read_ahead_.finish_fetch(buffer, calls);
    lock.notify_all();
    return;
  }
  TransferResult result;
  if (!write_behind_.write_queued(buffer, result)) return;
  FileLock lock(monitor_);  // no Call: writes of a handler belong behind the call it interrupted
  write_behind_.finish_write(buffer, result);
  lock.notify_all();
}

void BufferedFile::check(std::uint64_t now_ns) {
  {
    const FileLock lock(monitor_, std::try_to_lock);
    if (lock.is_held() && is_open()) write_behind_.enqueue_expired(now_ns);
  }
  publish();
}

// ---- reports

void BufferedFile::publish() {
  const FileLock lock(monitor_);
  if (lock.is_held()) report_.publish(state_.reason);
}

void BufferedFile::print_figures() {
  if (!std::exchange(context_.hints.verbose, false)) return;
  buffers::print_figures(context_.backing.path(), context_.hints, statistics());
}

Statistics BufferedFile::statistics() {
  const Call call(*this);
  return context_.statistics;
}

}  // namespace pario::buffers
