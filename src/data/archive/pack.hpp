// Packs a directory into shards and an index.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/base.hpp"
#include "data/records/records.hpp"

namespace pario::archive {

struct PackRequest {
  std::string directory, output;  ///< `output` must not exist; it is published when complete
  std::uint64_t shard_size = 1ULL << 30;  ///< bytes before compression
  std::uint32_t shards = 0;               ///< their number; 0: by their size
  int level = 3;                          ///< of zstd
  unsigned threads = 1;
};

struct Packing {
  std::uint64_t members = 0, bytes = 0, packed = 0;  ///< bytes of the files, and of the shards
  std::uint32_t shards = 0;
};

base::Result<Packing> pack(const PackRequest& request, const records::Show& show);

}  // namespace pario::archive
