// Makes the index of a shuffled file from that of its input.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/index.hpp"
#include "data/records/philox.hpp"

namespace pario::records {

/// True for kinds whose files can be read only with an index.
inline bool keeps_index(Kind kind) { return kind == Kind::packed || kind == Kind::raw; }
/// Bytes of memory that arrange() needs beside the index itself.
inline std::uint64_t memory_to_arrange(const Index& index) {
  return index.count() * 2 * sizeof(std::uint64_t);
}
/// The records of `index` in the order of the shuffle, back to back from 0 on, with their names,
/// attributes and checksums. `skipped`: numbers of records that are left out, ascending.
IndexBuilder arrange(const Index& index, const ShuffleKeys& keys,
                     const std::vector<std::uint64_t>& skipped);

}  // namespace pario::records
