// Striping hints for new files.
#pragma once

#include <cstdint>

#include "core/hints/hints.hpp"

namespace pario::file {

/// Hints that ask for stripes of `unit` bytes on `targets` targets; 0: the directory's default.
inline hints::StripingHints make_striping(std::uint64_t unit, std::uint64_t targets = 0) {
  hints::StripingHints hints = hints::default_striping_hints();
  hints.striping_unit = unit;
  hints.striping_factor = targets;
  return hints;
}

}  // namespace pario::file
