// lustre.lov, byte by byte. Inside room layout.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "layout/striping.hpp"

namespace pario::layout {

/// By its magic.
bool is_lustre(std::span<const std::byte> attribute);
/// Why it is no layout; null: it is one. The functions below say nothing of what is none.
const char* lustre_problem(std::span<const std::byte> attribute);
/// See read_striping.
Striping lustre_striping(std::span<const std::byte> attribute);
std::vector<StripedPart> lustre_parts(std::span<const std::byte> attribute);

}  // namespace pario::layout
