// The division of members among shards and frames: from their sizes alone, before any file is read.
#pragma once

#include <cstdint>
#include <vector>

#include "data/archive/tree.hpp"

namespace pario::archive {

/// Bytes at which a frame is complete; bytes of each frame of a longer file.
inline constexpr std::uint64_t kFrame = 512 << 10, kLongFrame = 4 << 20;

/// The content of a frame: whole members [first, last), or a part of a single one.
struct FramePlan {
  std::size_t first = 0, last = 0;
  std::uint32_t shard = 0;
  base::Extent part = {};   ///< of the file; empty: whole members
  std::uint64_t bytes = 0;  ///< of files

  bool whole() const { return part.empty(); }
  bool begins() const { return part.begin == 0; }
  bool ends(std::uint64_t size) const { return whole() || part.end == size; }
  bool operator==(const FramePlan&) const = default;
};

struct Division {
  std::uint32_t shards = 0;
  std::vector<FramePlan> pieces;
};

/// Sorts entries in the order of the shards: by name; last hard links, then directories, deep ones
/// first. If the shards are extracted in order, a link's target exists before it, and no member is
/// added to a directory whose time is set already.
void arrange(std::vector<Entry>& entries);
bool comes_last(const Entry& entry);

/// Divides arranged entries into shards of equal size: `shards`, or (0) as many as follow from
/// `shard_size`.
Division divide(const std::vector<Entry>& entries, std::uint32_t shards, std::uint64_t shard_size);

}  // namespace pario::archive
