// Shards become a directory again.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "data/archive/losses.hpp"
#include "data/archive/packed.hpp"
#include "data/records/records.hpp"

namespace pario::archive {

struct UnpackRequest {
  std::string output;                ///< must not exist; it is there when all of it is whole
  std::vector<std::size_t> members;  ///< which, in rising order; empty: all
  unsigned threads = 1;
  bool strict = false;           ///< an error where members would have to go without something, too
  bool same_permissions = true;  ///< false: less the umask, and nothing that grants more (Maker)
  bool special = true;           ///< false: devices and pipes are left out
  std::uint64_t max_size =
      std::numeric_limits<std::uint64_t>::max();  ///< bytes of all files, holes among them
};

struct Unpacking {
  std::uint64_t members = 0, left_out = 0;  ///< made, and devices and pipes that were not to be
  LossTable losses;
};

/// Refuses archives that say impossible things, and sizes beyond the limit, before anything is
/// made.
base::Result<Unpacking> unpack(const Archive& archive, const UnpackRequest& request,
                               const records::Show& show);

}  // namespace pario::archive
