// How a file comes to have buffers, and how it ceases to: closed, left to the kernel for good or for a time, in the child of a fork.
#include <sys/resource.h>

#include <algorithm>

#include "stream/children.hpp"
#include "stream/file.hpp"
#include "stream/memory.hpp"

namespace pario::stream {

std::uint64_t file_size_limit() {
  struct rlimit limit;
  constexpr auto kMost = static_cast<std::uint64_t>(INT64_MAX);
  return base::system_call(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) < 0 ? kMost : std::min<std::uint64_t>(limit.rlim_cur, kMost);
}

bool File::begin(int descriptor, const struct stat& status, const hints::StreamHints& hints, std::string_view path, const Origin& origin) {
  hints_ = hints;
  count_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(hints.count, kMostBuffers));
  starved_ = false;
  if (!take_buffers(descriptor)) return false;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  path_size_ = path.copy(path_, sizeof path_);
  limit_ = file_size_limit();
  statistics_ = published_ = {};
  origin_ = origin;
  reason_ = Reason::none;
  error_ = 0;
  buffering_ = true;
  paused_ = inherited_ = forked_ = false;
  appending_ = false;
  last_ = nullptr;
  wasted_windows_ = 0;
  once_ = hints.read_once ? once::attach(status) : nullptr;
  whole_ = nullptr;
  try_whole_ = 0;
  used_.store(true, std::memory_order_release);
  if (!audit::is_troubled(origin_.record)) audit::enter(origin_.record, outcome(), hints_);
  return true;
}

/// The first of the process's own, or all of those that outlive it.
bool File::take_buffers(int descriptor) {
  lost_ = hints_.survive ? survive::begin(region_, descriptor, hints_.size, count_) : "";
  hints_.survive &= lost_.empty();
  if (hints_.survive) {
    starved_ = region_.count < count_;
    count_ = region_.count;
    buffers_ = region_.buffers;
    return true;
  }
  buffers_ = own_;
  buffers_[0].memory = whole::take_memory(hints_.size);
  return buffers_[0].memory != nullptr;
}

void File::add(Handle& handle, std::uint64_t since) {
  const Lock lock(*this);
  count_call(statistics_.open, 0, since);
  handle.file = this;
  if (handle.writes) leave_copies();
  handle.next = handles_;
  handles_ = &handle;
}

bool File::remove(Handle& handle) {
  const Lock lock(*this);
  for (Handle** link = &handles_; *link != nullptr; link = &(*link)->next) {
    if (*link != &handle) continue;
    *link = handle.next;
    break;
  }
  handle.file = nullptr;
  return handles_ == nullptr && !inherited_;
}

void File::leave_copies() {
  if (once_ != nullptr) once::detach(*once_);
  once_ = nullptr;
  leave_whole();
}

void File::leave_whole() {
  if (whole_ != nullptr) whole::detach(*whole_);
  whole_ = nullptr;
}

void File::end() {
  publish();
  leave_copies();
  if (region_.memory != nullptr) survive::end(region_);
  give_back_buffers();
  used_.store(false, std::memory_order_release);
}

void File::give_back_buffers() {
  for (Buffer& buffer : own_)
    if (buffer.memory != nullptr) {
      memory::give_back(buffer.memory, hints_.size);
      buffer.memory = nullptr;
    }
  buffers_ = own_;
}

void File::inherit() {
  if (!used()) return;
  new (&mutex_) std::mutex;
  new (&changed_) Condition;
  for (Buffer& buffer : own_) {
    buffer.written.clear();
    buffer.state = Buffer::State::empty;
  }
  if (region_.memory != nullptr) survive::forget(region_);
  ahead_ = 0;
  once_ = nullptr;
  whole_ = nullptr;
  handles_ = nullptr;
  late_size_.store(0, std::memory_order_relaxed);
  origin_ = {};  // the row is in another process's log
  give_back_buffers();
  buffering_ = paused_ = false;
  inherited_ = true;
  reason_ = Reason::fork;
}

void File::leave(Reason reason, bool for_now) {
  Lock lock(*this);
  if (!lock.held() || (!buffering_ && !paused_)) return;
  if (buffering_) settle_locked(lock);
  leave_whole();
  buffering_ = false;  // before another thread can write into a buffer again
  paused_ = for_now;
  if (reason == Reason::none) return;  // at the end, whatever was before
  reason_ = reason;
  audit::enter(origin_.record, outcome(), hints_);
}

/// Whether the children that have copies of descriptors are gone; a look now and then. The kernel has the offsets.
bool File::begins_again() {
  constexpr std::uint32_t kLookOneOf = 8;
  if (!paused_ || ++passed_ % kLookOneOf != 0) return false;
  const children::Fate fate = children::fate();
  if (fate == children::Fate::alive) return false;
  paused_ = forked_ = false;
  bool good = fate == children::Fate::gone;
  for (Handle* handle = handles_; good && handle != nullptr; handle = handle->next) good = take_offset(*handle);
  if (!good) return false;
  limit_ = file_size_limit();
  buffering_ = true;
  appending_ = false;
  reason_ = Reason::none;
  audit::enter(origin_.record, outcome(), hints_);
  return true;
}

bool File::take_offset(Handle& handle) const {
  struct stat status;
  if (kernel.status(handle.descriptor, status) != 0 || !is(status.st_dev, status.st_ino)) return false;
  const long offset = handle.appends ? status.st_size : kernel.seek(handle.descriptor, 0, SEEK_CUR);
  handle.offset = static_cast<std::uint64_t>(offset);
  handle.next_read = handle.offset;
  return offset >= 0;
}

}  // namespace pario::stream
