// The format of the attribute lustre.lov. Internal to module layout.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/layout/striping.hpp"

namespace pario::layout {

/// True if the attribute has the magic of lustre.lov.
bool is_lustre(std::span<const std::byte> attribute);
/// Returns why the attribute is not a layout; null if it is one. The functions below ignore damaged
/// attributes.
const char* lustre_problem(std::span<const std::byte> attribute);
/// See read_striping().
Striping lustre_striping(std::span<const std::byte> attribute);
std::vector<StripedPart> lustre_parts(std::span<const std::byte> attribute);

}  // namespace pario::layout
