// Temporary files compressed by LZ4, if its library is installed.
#pragma once

#include <memory>

#include "core/base/base.hpp"
#include "data/records/buckets.hpp"

namespace pario::records {

/// A heap that compresses pieces and stores them in `below`. Each calling thread needs memory for a
/// piece and an eighth more. ENOENT: there is no liblz4.so.1.
base::Result<std::unique_ptr<Heap>> make_compressed_heap(std::unique_ptr<Heap> below);

}  // namespace pario::records
