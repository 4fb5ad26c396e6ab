#include "layers/buffers/window_cache.hpp"

#include <algorithm>

#include "core/base/base.hpp"
#include "layers/buffers/memory_pool.hpp"
#include "layers/buffers/process_copy.hpp"

namespace pario::buffers {

bool WindowCache::allocate(hints::StreamHints& hints, int descriptor) {
  size_ = hints.size;
  count_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(hints.count, kMostBuffers));
  lacks_memory_ = false;
  survive_failure_ = hints.survive ? surviving_.create(descriptor, size_, count_) : "";
  hints.survive &= survive_failure_.empty();
  if (hints.survive) {
    buffers_ = surviving_.buffers().data();
    lacks_memory_ = surviving_.buffers().size() < count_;
    count_ = static_cast<std::uint32_t>(surviving_.buffers().size());
    return true;
  }
  buffers_ = own_;
  buffers_[0].memory = process_copies::allocate_memory(size_);
  return buffers_[0].memory != nullptr;
}

void WindowCache::release() {
  if (surviving_.is_open()) surviving_.release();
  release_own();
}

void WindowCache::release_own() {
  for (Buffer& buffer : own_) {
    if (buffer.memory == nullptr) continue;
    memory_pool::release(buffer.memory, size_);
    buffer.memory = nullptr;
  }
  buffers_ = own_;
}

void WindowCache::reset_in_child() {
  for (Buffer& buffer : own_) {
    buffer.valid.clear();
    buffer.state = Buffer::State::empty;
  }
  if (surviving_.is_open()) surviving_.reset_in_child();
  release_own();
}

bool WindowCache::has(Buffer::State state) const {
  return std::ranges::any_of(all(), [=](const Buffer& buffer) { return buffer.state == state; });
}

Buffer* WindowCache::find_dirty(std::uint64_t begin) const {
  for (Buffer& buffer : all())
    if (buffer.is_dirty() && buffer.begin == begin) return &buffer;
  return nullptr;
}

Buffer* WindowCache::find_oldest_filling() const {
  Buffer* oldest = nullptr;
  for (Buffer& buffer : all())
    if (buffer.state == Buffer::State::filling &&
        (oldest == nullptr || buffer.dirty_since_ns < oldest->dirty_since_ns))
      oldest = &buffer;
  return oldest;
}

Buffer* WindowCache::find_first_dirty() const {
  Buffer* first = nullptr;
  for (Buffer& buffer : all())
    if (buffer.is_dirty() && !buffer.valid.is_empty() &&
        (first == nullptr || buffer.begin < first->begin))
      first = &buffer;
  return first;
}

Buffer* WindowCache::find_empty() {
  for (Buffer& buffer : all()) {
    if (buffer.state != Buffer::State::empty) continue;
    if (buffer.memory == nullptr) buffer.memory = process_copies::allocate_memory(size_);
    if (buffer.memory != nullptr) return &buffer;
    lacks_memory_ = true;
  }
  return nullptr;
}

const std::byte* WindowCache::find_dirty_bytes(std::uint64_t offset, std::uint64_t bytes) const {
  const std::uint64_t begin = base::round_down(offset, size_), end = offset - begin + bytes;
  if (bytes == 0 || end > size_) return nullptr;
  for (const Buffer& buffer : all())
    if (buffer.state == Buffer::State::filling && buffer.begin == begin &&
        buffer.valid.contains(static_cast<std::uint32_t>(offset - begin),
                              static_cast<std::uint32_t>(end)))
      return buffer.memory + (offset - begin);
  return nullptr;
}

std::uint64_t WindowCache::dirty_end() const {
  std::uint64_t end = 0;
  for (const Buffer& buffer : all())
    if (buffer.is_dirty()) end = std::max(end, buffer.begin + buffer.valid.end());
  return end;
}

std::uint64_t WindowCache::allocated_count() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(all(), [](const Buffer& buffer) { return buffer.memory != nullptr; }));
}

}  // namespace pario::buffers
