// lustre.lov, byte by byte. Inside room layout.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "layout/striping.hpp"

namespace pario::layout {

bool is_lustre(std::span<const std::byte> attribute);
/// The striping of a plain layout, or of the range of a composite one that begins last. Uses no heap.
Striping lustre_striping(std::span<const std::byte> attribute);
std::vector<StripedPart> lustre_parts(std::span<const std::byte> attribute);

}  // namespace pario::layout
