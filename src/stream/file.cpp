#include "stream/file.hpp"

#include <algorithm>
#include <cerrno>

#include "trace/trace.hpp"

namespace pario::stream {
namespace {

/// The file that this thread holds, or is about to hold.
[[gnu::tls_model("initial-exec")]] constinit thread_local File* holding = nullptr;

constexpr std::uint64_t kRescueNs = 5'000'000'000;  // for the writer, when the process is about to end

/// Counts a call; of quick ones, which take no longer than two looks at the clock, one of several is timed for all of them.
class Count {
 public:
  Count(Statistics::Calls& calls, bool quick)
      : calls_(calls), factor_(quick ? kTimedOneOf : 1), timed_(calls.calls % factor_ == 0), start_(timed_ ? trace::ticks() : 0) {}
  void end(long bytes) {
    if (bytes < 0) return;
    ++calls_.calls;
    calls_.bytes += static_cast<std::uint64_t>(bytes);
    if (timed_) calls_.ticks += (trace::ticks() - start_) * factor_;
  }

 private:
  static constexpr std::uint64_t kTimedOneOf = 16;

  Statistics::Calls& calls_;
  std::uint64_t factor_;
  bool timed_;
  std::uint64_t start_;
};

}  // namespace

File::Lock::Lock(File& file) : file_(file), outer_(holding), held_(holding != &file), lock_(file.mutex_, std::defer_lock) {
  if (!held_) return;
  holding = &file;
  lock_.lock();
}

File::Lock::~Lock() {
  if (!held_) return;
  if (file_.late_size_.load(std::memory_order_relaxed) != 0) [[unlikely]]
    file_.catch_up(*this);
  lock_.unlock();
  holding = outer_;
}

// ---- writing

long File::write(Handle& handle, std::span<const iovec> pieces, At at) {
  Lock lock(*this);
  if (!lock.held()) [[unlikely]]
    return take_late(handle, pieces, at);
  Count count(statistics_.write, is_quick(handle, pieces, at));
  const long result = write_locked(lock, handle, pieces, at);
  count.end(result);
  return result;
}

/// Whether a write will only add to the buffer that was last written to.
bool File::is_quick(const Handle& handle, std::span<const iovec> pieces, At at) const {
  if (last_ == nullptr || last_->state != Buffer::State::filling || handle.appends) return false;
  const std::uint64_t begin = at.value_or(handle.offset);
  return begin >= last_->begin && begin + bytes_of(pieces) < last_->begin + hints_.size;
}

long File::write_locked(Lock& lock, Handle& handle, std::span<const iovec> pieces, At at) {
  if ((!buffering_ && !begins_again()) || !handle.writes) [[unlikely]]
    return kPass;
  if (error_ != 0) [[unlikely]]
    return take_error();
  const std::uint64_t bytes = bytes_of(pieces);
  drop_ahead(lock);
  if (handle.appends != appending_ || (appending_ && last_ != nullptr && last_->through != &handle)) [[unlikely]] {
    drain(lock);
    appending_ = handle.appends;
  }
  const std::uint64_t begin = at.value_or(handle.offset);
  if (bytes >= hints_.size || !fits(begin, bytes) || (handle.appends && (at || hints_.survive)))
    return write_through(lock, handle, pieces, at);
  if (handle.appends) return append(lock, handle, pieces, bytes);
  if (!at) handle.offset += bytes;  // at once: others may get the file while this waits for a buffer
  std::uint64_t offset = begin;
  for (const iovec& piece : pieces) {
    put(lock, handle, offset, {static_cast<const std::byte*>(piece.iov_base), piece.iov_len});
    offset += piece.iov_len;
  }
  return static_cast<long>(bytes);
}

/// What a call past the end of the possible comes to is the kernel's to say.
bool File::fits(std::uint64_t offset, std::uint64_t bytes) const { return offset <= limit_ && bytes <= limit_ - offset; }

/// A call that the buffers are no help for.
long File::write_through(Lock& lock, Handle& handle, std::span<const iovec> pieces, At at) {
  drain(lock);
  if (error_ != 0) return take_error();
  if (handle.appends) {
    handle.offset += bytes_of(pieces);
    handle.rewound &= static_cast<bool>(at);  // pwrite does not move it
    return kPass;
  }
  const std::uint64_t start = trace::ticks();
  const long result = kernel.pwritev(handle.descriptor, pieces.data(), static_cast<int>(pieces.size()), at.value_or(handle.offset));
  count_call(statistics_.system_write, result > 0 ? static_cast<std::uint64_t>(result) : 0, start);
  if (result > 0 && !at) handle.offset += static_cast<std::uint64_t>(result);
  return result;
}

/// A call is never divided: others may append, too.
long File::append(Lock& lock, Handle& handle, std::span<const iovec> pieces, std::uint64_t bytes) {
  Buffer& buffer = end_of_file(lock, handle, bytes);
  const std::uint32_t begin = buffer.written.end();
  std::uint32_t end = begin;
  for (const iovec& piece : pieces) {
    if (piece.iov_len != 0) std::memcpy(buffer.memory + end, piece.iov_base, piece.iov_len);
    end += static_cast<std::uint32_t>(piece.iov_len);
  }
  if (bytes != 0) buffer.written.add(begin, end);
  handle.offset += bytes;
  handle.rewound = false;
  return static_cast<long>(bytes);
}

void File::put(Lock& lock, Handle& handle, std::uint64_t offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const std::uint64_t begin = base::round_down(offset, hints_.size);
    const auto at = static_cast<std::uint32_t>(offset - begin);
    const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(data.size(), hints_.size - at));
    Buffer& buffer = window(lock, handle, begin);
    std::memcpy(buffer.memory + at, data.data(), bytes);
    // Entered when it is there: a rescue may come at any moment.
    if (!buffer.written.add(at, at + bytes)) {
      hand_over(buffer);
      continue;
    }
    if (at + bytes == hints_.size && buffer.full(hints_.size)) hand_over(buffer);
    offset += bytes;
    data = data.subspan(bytes);
  }
}

/// The buffer of a window; waits for one.
Buffer& File::window(Lock& lock, Handle& handle, std::uint64_t begin) {
  if (last_ != nullptr && last_->begin == begin && last_->state == Buffer::State::filling) [[likely]]
    return *last_;
  for (;;) {
    if (Buffer* buffer = window_now(handle, begin)) return *(last_ = buffer);
    if (any(Buffer::State::queued)) changed_.wait(lock.lock_);
  }
}

// ---- the rest of what is done to files

long File::read(Handle& handle, std::span<const iovec> pieces, At at) {
  Lock lock(*this);
  if (!lock.held()) return -EINTR;
  if ((!buffering_ && !begins_again()) || !handle.reads) return kPass;
  Count count(statistics_.read, whole_ != nullptr);
  if (appending_ || handle.appends) drain(lock);
  if (handle.appends && !at) return rewind(handle), kPass;
  while (!at && handle.busy) changed_.wait(lock.lock_);  // two readers of one offset get different bytes
  if (!buffering_) return kPass;
  handle.busy |= !at;
  const long result = read_locked(lock, handle, pieces, at.value_or(handle.offset));
  if (!at) {
    handle.busy = false;
    if (result > 0) handle.offset += static_cast<std::uint64_t>(result);
    changed_.notify_all();
  }
  count.end(result);
  return result;
}

long File::read_locked(Lock& lock, Handle& handle, std::span<const iovec> pieces, std::uint64_t offset) {
  if (hints_.whole != 0)
    if (const Whole* copy = right_copy(handle)) return copy->read(pieces, offset);
  if (once_ != nullptr) {
    const long served = once::read(*once_, handle.descriptor, pieces, offset);
    if (served != kPass) return served;
  }
  const iovec& first = pieces[0];
  if (pieces.size() == 1 && is_served_from_buffer(first, offset)) {
    const std::uint64_t begin = base::round_down(offset, hints_.size);
    std::memcpy(first.iov_base, find(begin)->memory + (offset - begin), first.iov_len);
    return static_cast<long>(first.iov_len);
  }
  const bool ahead = pieces.size() == 1 && read_ahead(lock, handle, first, offset);
  if (!ahead && dirty_end() > offset) drain(lock);  // also what lies behind: it says where the file ends
  const std::uint64_t start = trace::ticks();
  const long result =
      ahead ? static_cast<long>(first.iov_len) : kernel.preadv(handle.descriptor, pieces.data(), static_cast<int>(pieces.size()), offset);
  if (!ahead) count_call(statistics_.system_read, result > 0 ? static_cast<std::uint64_t>(result) : 0, start);
  handle.next_read = offset + static_cast<std::uint64_t>(std::max(result, 0L));
  return result;
}

bool File::is_served_from_buffer(const iovec& piece, std::uint64_t offset) const {
  const std::uint64_t begin = base::round_down(offset, hints_.size), end = offset - begin + piece.iov_len;
  if (piece.iov_len == 0 || end > hints_.size) return false;
  return std::ranges::any_of(std::span(buffers_, count_), [&](const Buffer& buffer) {
    return buffer.state == Buffer::State::filling && buffer.begin == begin &&
           buffer.written.contains(static_cast<std::uint32_t>(offset - begin), static_cast<std::uint32_t>(end));
  });
}

Whole* File::right_copy(const Handle& handle) {
  if (whole_ != nullptr && whole_->is_right(handle.descriptor)) return whole_;
  leave_whole();
  if (!handle.reads || !whole::is_time(try_whole_)) return nullptr;
  for (const Handle* other = handles_; other != nullptr; other = other->next)
    if (other->writes) return nullptr;
  whole_ = whole::attach(handle.descriptor, hints_.whole, statistics_.system_read);
  if (whole_ == nullptr) try_whole_ = whole::later();
  return whole_;
}

long File::seek(Handle& handle, std::int64_t offset, int whence) {
  Lock lock(*this);
  if (!lock.held()) return -EINTR;
  if (!buffering_) return kPass;
  if (handle.appends) return drain(lock), rewind(handle), kPass;
  const auto from = origin_of(handle, whence);
  std::int64_t reached = 0;
  if (from && __builtin_add_overflow(*from, offset, &reached)) return -EOVERFLOW;
  if (!from) drain(lock);
  // The kernel knows the largest offset of the file system, and where files end.
  const auto known = static_cast<std::int64_t>(std::max(handle.offset, whole_ == nullptr ? 0 : whole_->size()));
  const long result = from && reached >= 0 && reached <= known
                          ? reached
                          : kernel.seek(handle.descriptor, from ? reached : offset, from ? SEEK_SET : whence);
  if (result >= 0) handle.offset = static_cast<std::uint64_t>(result);
  return result;
}

/// What an offset counts from; nothing: the kernel knows it.
std::optional<std::int64_t> File::origin_of(const Handle& handle, int whence) {
  if (whence == SEEK_SET) return 0;
  if (whence == SEEK_CUR) return static_cast<std::int64_t>(handle.offset);
  const Whole* copy = whence == SEEK_END && hints_.whole != 0 ? right_copy(handle) : nullptr;
  return copy == nullptr ? std::nullopt : std::optional(static_cast<std::int64_t>(copy->size()));
}

long File::flush() {
  Lock lock(*this);
  if (!lock.held()) return 0;
  drain(lock);
  return take_error();
}

void File::settle() {
  Lock lock(*this);
  if (lock.held() && buffering_) settle_locked(lock);
}

void File::settle_locked(Lock& lock) {
  drain(lock);
  drop_ahead(lock);
  if (whole_ != nullptr) whole_->doubt();
  for (Handle* handle = handles_; handle != nullptr; handle = handle->next)
    if (!handle->appends)
      kernel.seek(handle->descriptor, static_cast<std::int64_t>(handle->offset), SEEK_SET);
    else
      rewind(*handle);
}

/// The kernel's offset is what a handle that appends has.
void File::rewind(Handle& handle) {
  if (handle.rewound) kernel.seek(handle.descriptor, 0, SEEK_SET);
  handle.rewound = false;
}

void File::resume(Handle& handle) {
  const Lock lock(*this);
  if (!lock.held() || !buffering_) return;
  const long offset = kernel.seek(handle.descriptor, 0, SEEK_CUR);
  if (offset >= 0) handle.offset = static_cast<std::uint64_t>(offset);
}

bool File::rest(Handle& handle, Rest how) {
  Lock lock(*this);
  if (!lock.held() || !buffering_) return false;
  if (how == Rest::written) drain(lock);
  if (how == Rest::leaving) hand_over_all();
  drop_ahead(lock);
  if (error_ != 0 || (how == Rest::leaving && dirty_end() == 0)) return false;
  handle.rewound = handle.appends;
  handle.next_read = handle.sequential_reads = 0;
  if (!handle.appends) handle.offset = 0;
  return true;
}

std::uint64_t File::position(const Handle& handle) {
  const Lock lock(*this);
  return handle.offset;
}

Statistics File::statistics() {
  const Lock lock(*this);
  return statistics_;
}

long File::change_descriptor(Handle& handle, int other) {
  Lock lock(*this);
  const std::uint64_t start = trace::ticks();
  drain(lock);
  drop_ahead(lock);
  handle.descriptor = other;
  count_call(statistics_.close, 0, start);
  return take_error();
}

void File::rescue() {
  while (Buffer* buffer = next_to_rescue()) {
    if (is_ours(*buffer)) write_out(*buffer);
    buffer->written.clear();
  }
}

/// The first in the file, which of those that append is the oldest.
Buffer* File::next_to_rescue() {
  Buffer* first = nullptr;
  for (Buffer& buffer : std::span(buffers_, count_))
    if (buffer.dirty() && !buffer.written.empty() && (first == nullptr || buffer.begin < first->begin)) first = &buffer;
  return first;
}

/// What the writer is writing just now is waited for, for a while.
bool File::is_ours(Buffer& buffer) {
  using Hand = Buffer::Hand;
  if (buffer.state != Buffer::State::queued) return true;
  Hand found = Hand::none;
  if (buffer.hand.compare_exchange_strong(found, Hand::rescue, std::memory_order_acq_rel)) return true;
  const std::uint64_t begin = base::monotonic_ns();
  while (buffer.hand.load(std::memory_order_acquire) == Hand::writer && base::monotonic_ns() - begin < kRescueNs) {
    const timespec moment{0, 100'000};
    base::system_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, nullptr);
  }
  return buffer.hand.load(std::memory_order_acquire) == Hand::writer;
}

}  // namespace pario::stream
