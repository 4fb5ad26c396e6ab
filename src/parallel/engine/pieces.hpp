// Collective accesses given as pieces: runs of the file with their memory.
#pragma once

#include <span>

#include "parallel/engine/engine.hpp"

namespace pario::engine {

/// Converts pieces to one access, in the order of the file. EINVAL if pieces overlap in the file.
base::Result<pattern::Access> access_of_pieces(std::span<const Piece> pieces);

/// Collective. Moves the pieces of each rank; all ranks get the error of a rank whose pieces
/// overlap.
base::Result<std::uint64_t> move_pieces(SharedFile& file, plan::Direction direction,
                                        std::span<const Piece> pieces);

}  // namespace pario::engine
