// Unpacks shards to a directory.
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
  std::string output;                ///< must not exist; it is published when complete
  std::vector<std::size_t> members;  ///< in ascending order; empty: all
  unsigned threads = 1;
  bool strict = false;           ///< losses are errors (Losses)
  bool same_permissions = true;  ///< false: less the umask, and nothing that grants more (Maker)
  bool special = true;           ///< false: devices and pipes are left out
  std::uint64_t max_size =
      std::numeric_limits<std::uint64_t>::max();  ///< bytes of all files, including holes
};

struct Unpacking {
  std::uint64_t members = 0, left_out = 0;  ///< created; devices and pipes that were left out
  LossTable losses;
};

/// Unpacks an archive. Refuses inconsistent archives, and sizes beyond the limit, before anything
/// is created. Members of missing shards are losses, as long as another shard exists.
base::Result<Unpacking> unpack(const Archive& archive, const UnpackRequest& request,
                               const records::Show& show);

}  // namespace pario::archive
