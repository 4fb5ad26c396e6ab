// Temporary files that are compressed by LZ4, where its library is.
#pragma once

#include <memory>

#include "base/base.hpp"
#include "records/buckets.hpp"

namespace pario::records {

/// Bytes of memory for it, whatever the number of threads.
inline constexpr std::uint64_t kMemoryToCompress = 8 << 20;
/// Compresses what is put into `below`. ENOENT: there is no liblz4.so.1.
base::Result<std::unique_ptr<Heap>> compressed(std::unique_ptr<Heap> below);

}  // namespace pario::records
