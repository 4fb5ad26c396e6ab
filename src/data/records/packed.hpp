// Packed files, pario's own format: records back to back, then their index (docs/records.md, Packed
// files).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/index.hpp"
#include "data/records/ranks.hpp"
#include "data/records/team.hpp"

namespace pario::records {

/// True if a file has the trailer of a packed file.
bool is_packed(const std::string& path);
/// Opens the index within a packed file.
base::Result<Index> open_packed(const std::string& path);
/// The bytes that follow records which end at `end`: filler, index, trailer.
std::vector<std::byte> packed_tail(std::uint64_t end, std::vector<std::byte> index);

struct PackRequest {
  std::string directory;
  std::string output;
  bool shuffle = false;
  std::uint64_t seed = 0;
  unsigned threads = 4;
  Ranks ranks = {};  ///< several: all call pack() with the same request, and see both paths
};
/// Packs each regular file beneath `directory` as a record, in the order of their names or
/// shuffled. Publishes the output when it is complete. Returns the number of records. Several ranks
/// write the bytes of one; all return an Error of one.
base::Result<std::uint64_t> pack(const PackRequest& request, const Show& show = {});

}  // namespace pario::records
