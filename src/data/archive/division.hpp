// Which members go into which frame of which shard: decided by sizes alone, before anything is
// read.
#pragma once

#include <cstdint>
#include <vector>

#include "data/archive/tree.hpp"

namespace pario::archive {

/// A frame closes when it has so many bytes; of a longer file each frame has so many.
inline constexpr std::uint64_t kFrame = 512 << 10, kLongFrame = 4 << 20;

/// The content of a frame: whole members [first, last), or a part of a single one.
struct Piece {
  std::size_t first = 0, last = 0;
  std::uint32_t shard = 0;
  base::Extent part = {};   ///< of the file; empty: whole members
  std::uint64_t bytes = 0;  ///< of files

  bool whole() const { return part.empty(); }
  bool begins() const { return part.begin == 0; }
  bool ends(std::uint64_t size) const { return whole() || part.end == size; }
  bool operator==(const Piece&) const = default;
};

struct Division {
  std::uint32_t shards = 0;
  std::vector<Piece> pieces;
};

/// The order in which members lie in the shards: by name, hard links and directories last of all,
/// deep ones first. If the shards are extracted in order, a link's target exists before it, and no
/// member is put into a directory whose time is set already.
void arrange(std::vector<Entry>& entries);
bool comes_last(const Entry& entry);

/// Shards of even size, as many as said or (0) as follow from their size, of entries that are
/// arranged.
Division divide(const std::vector<Entry>& entries, std::uint32_t shards, std::uint64_t shard_size);

}  // namespace pario::archive
