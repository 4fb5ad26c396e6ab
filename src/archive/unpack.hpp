// Shards become a directory again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "archive/losses.hpp"
#include "archive/packed.hpp"
#include "records/records.hpp"

namespace pario::archive {

struct UnpackRequest {
  std::string output;                ///< must not exist; it is there when all of it is whole
  std::vector<std::size_t> members;  ///< which, in rising order; empty: all
  unsigned threads = 1;
  bool strict = false;  ///< an error where members would have to go without something, too
};

struct Unpacking {
  std::uint64_t members = 0;
  LossTable losses;
};

base::Result<Unpacking> unpack(const Archive& archive, const UnpackRequest& request, const records::Show& show);

}  // namespace pario::archive
