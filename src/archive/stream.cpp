#include "archive/stream.hpp"

#include <algorithm>

namespace pario::archive {

base::Result<std::span<const std::byte>> TarStream::next(std::uint64_t most) {
  if (at_ >= shard_.size()) return shard_.damaged("it ends within a member");
  if (!held_.contains(at_)) {
    const std::size_t number = shard_.frame_at(at_);
    const auto frame = shard_.read_frame(number);
    if (!frame.ok()) return frame.error();
    frame_ = *frame;
    held_ = shard_.frame(number);
  }
  const auto data = frame_.subspan(at_ - held_.begin, std::min(most, held_.end - at_));
  at_ += data.size();
  return data;
}

base::Status TarStream::read(std::string& out, std::uint64_t size) {
  out.clear();
  while (out.size() < size) {
    const auto data = next(size - out.size());
    if (!data.ok()) return data.status();
    out.append(reinterpret_cast<const char*>(data->data()), data->size());
  }
  return {};
}

}  // namespace pario::archive
