#include "data/archive/stream.hpp"

#include <algorithm>

namespace pario::archive {
namespace {

/// True if pieces are in order within a file of `size` bytes, and `stored` bytes are enough for all
/// of them.
bool fit(const std::vector<base::Extent>& data, std::uint64_t size, std::uint64_t stored) {
  std::uint64_t at = 0;
  for (const base::Extent& piece : data) {
    if (piece.begin < at || piece.end > size || piece.length() > stored) return false;
    stored -= piece.length();
    at = piece.end;
  }
  return true;
}

}  // namespace

base::Result<std::span<const std::byte>> TarStream::next(std::uint64_t most) {
  if (at_ >= shard_.size()) return shard_.damage_error("it ends within a member");
  if (!held_.contains(at_)) {
    const auto part = shard_.read_part(at_);
    if (!part.ok()) return part.error();
    frame_ = part->bytes;
    held_ = part->place;
  }
  const auto data = frame_.subspan(at_ - held_.begin, std::min(most, held_.end - at_));
  at_ += data.size();
  return data;
}

// Reads twice as many bytes each time until they contain the map, because only it has its length.
base::Status read_data_places(const Header& header, TarStream& tar,
                              std::vector<base::Extent>& data) {
  data = {{0, header.stored}};
  if (!header.sparse) return {};
  const std::uint64_t begin = tar.position(), most = std::min(header.stored, kLongestMap);
  std::string text;
  for (std::uint64_t size = kBlock; size < 2 * most; size *= 2) {
    tar.seek(begin);
    if (base::Status status = tar.read(text, std::min(size, most)); !status) return status;
    data.clear();
    const std::size_t map = parse_map(text, data);
    tar.seek(begin + map);
    if (map != 0 && map <= header.stored && fit(data, header.size, header.stored - map)) return {};
    if (map != 0) break;
  }
  return tar.damage_error("a map of holes that does not fit");
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
