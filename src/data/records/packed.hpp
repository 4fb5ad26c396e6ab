// Packed files, pario's own: records back to back, their index behind them. See docs/records.md,
// Packed files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/index.hpp"
#include "data/records/team.hpp"

namespace pario::records {

/// Whether a file ends as a packed one does.
bool is_packed(const std::string& path);
/// The index within a packed file.
base::Result<Index> open_packed(const std::string& path);
/// The bytes that follow records which end at `end`: filler, index, trailer.
std::vector<std::byte> packed_tail(std::uint64_t end, std::vector<std::byte> index);

struct PackRequest {
  std::string directory;
  std::string output;
  bool shuffle = false;
  std::uint64_t seed = 0;
  unsigned threads = 4;
};
/// Every regular file beneath `directory` becomes a record, in the order of their names or
/// shuffled. Nothing is left under the name of the output unless it is whole. Records packed.
base::Result<std::uint64_t> pack(const PackRequest& request, const Show& show = {});

}  // namespace pario::records
