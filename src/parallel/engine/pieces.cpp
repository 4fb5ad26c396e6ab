#include "parallel/engine/pieces.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

namespace pario::engine {

base::Result<pattern::Access> access_of_pieces(std::span<const Piece> pieces) {
  std::vector<Piece> sorted(pieces.begin(), pieces.end());
  std::erase_if(sorted, [](const Piece& piece) { return piece.memory.empty(); });
  std::ranges::sort(sorted, {}, &Piece::offset);
  if (sorted.empty()) return pattern::Access{};
  const std::uint64_t origin = sorted.front().offset;
  const auto base_address = reinterpret_cast<std::intptr_t>(sorted.front().memory.data());
  std::vector<std::int64_t> file_places, memory_places;
  std::vector<std::uint64_t> lengths;
  std::uint64_t bytes = 0, end = origin;
  for (const Piece& piece : sorted) {
    if (piece.offset < end)
      return base::Error{.number = EINVAL,
                         .where = base::Extent::at(piece.offset, piece.memory.size()),
                         .detail = "pieces of one rank overlap in the file"};
    end = piece.offset + piece.memory.size();
    bytes += piece.memory.size();
    file_places.push_back(static_cast<std::int64_t>(piece.offset - origin));
    memory_places.push_back(reinterpret_cast<std::intptr_t>(piece.memory.data()) - base_address);
    lengths.push_back(piece.memory.size());
  }
  const pattern::Layout byte = pattern::Layout::block(1);
  return pattern::Access{
      .buffer = sorted.front().memory.data(),
      .memory = pattern::Layout::make_indexed(byte, memory_places, lengths),
      .view = {.displacement = origin,
               .filetype = pattern::Layout::make_indexed(byte, file_places, lengths)},
      .bytes = bytes};
}

base::Result<std::uint64_t> move_pieces(SharedFile& file, plan::Direction direction,
                                        std::span<const Piece> pieces) {
  const bool writes = direction == plan::Direction::write;
  const char* const call = writes ? "write_pieces" : "read_pieces";
  const auto access = access_of_pieces(pieces);
  if (!access) {
    base::Error error = access.error();
    error.operation = call;
    error.path = file.path();
    error.rank = file.comm().rank();
    file.refuse(direction, error, call);
    return error;
  }
  return writes ? file.write(*access, With::together, call)
                : file.read(*access, With::together, call);
}

}  // namespace pario::engine
