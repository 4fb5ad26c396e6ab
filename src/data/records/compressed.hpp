// Temporary files that are compressed by LZ4, where its library is.
#pragma once

#include <memory>

#include "core/base/base.hpp"
#include "data/records/buckets.hpp"

namespace pario::records {

/// Compresses what is put into `below`. Each thread that calls it needs memory for a piece and an
/// eighth more. ENOENT: there is no liblz4.so.1.
base::Result<std::unique_ptr<Heap>> compressed(std::unique_ptr<Heap> below);

}  // namespace pario::records
