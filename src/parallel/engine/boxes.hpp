// Collective accesses given as boxes of arrays that a file holds.
#pragma once

#include <span>

#include "parallel/engine/engine.hpp"

namespace pario::engine {

/// Converts boxes to one access, in the order of the file; boxes are not expanded, unless some lie
/// between each other in the file. For writes EINVAL if boxes overlap in the file.
base::Result<pattern::Access> access_of_boxes(std::span<const Box> boxes,
                                              plan::Direction direction);

/// Collective. Moves the boxes of each rank; all ranks get the error of a rank whose boxes overlap.
base::Result<std::uint64_t> move_boxes(SharedFile& file, plan::Direction direction,
                                       std::span<const Box> boxes);

}  // namespace pario::engine
