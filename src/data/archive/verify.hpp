// Checks of an index before it is used.
#pragma once

#include <cstddef>
#include <span>

#include "data/archive/packed.hpp"

namespace pario::archive {

/// Checks the index alone: its checksum, that names are present, sorted and distinct, that types
/// are known, and that files have as many bytes as are stored. Errors name the member.
base::Status verify_index(const Archive& archive);

/// Checks that all members lie within their shards, of which the tables are read, and none in
/// another's bytes. The index itself is verified.
base::Status verify_places(const Archive& archive);

}  // namespace pario::archive
