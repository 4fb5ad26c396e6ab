// Checks of an index before it is used.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "data/archive/packed.hpp"

namespace pario::archive {

/// Checks the index alone: its checksum, names (present, sorted and distinct), types, and that the
/// size of a file equals its stored bytes. Errors name the member.
base::Status verify_index(const Archive& archive);

/// Checks that all members lie within their shards and do not overlap. Reads the tables of the
/// shards; the index must be verified.
base::Status verify_places(const Archive& archive);
/// As above, for the members in the shards whose entry in `shards` is true.
base::Status verify_places(const Archive& archive, const std::vector<bool>& shards);

}  // namespace pario::archive
