// Shards become a directory again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "archive/packed.hpp"
#include "records/records.hpp"

namespace pario::archive {

struct UnpackRequest {
  std::string output;                ///< must not exist; it is there when all of it is whole
  std::vector<std::size_t> members;  ///< which, in rising order; empty: all
  unsigned threads = 1;
};

/// Members that were made.
base::Result<std::uint64_t> unpack(const Archive& archive, const UnpackRequest& request, const records::Show& show);

}  // namespace pario::archive
