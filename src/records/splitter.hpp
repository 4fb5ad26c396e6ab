// From stretches of a Source to its records.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/base.hpp"
#include "records/buckets.hpp"
#include "records/source.hpp"

namespace pario::records {

/// One thread's.
class Splitter {
 public:
  using Visit = std::function<base::Status(const Heaped& record)>;
  virtual ~Splitter() = default;
  /// Calls `visit` for each record that begins in `where`, with its bytes if it is not longer than the limit.
  virtual base::Status split(base::Extent where, const Visit& visit) = 0;
};
/// `chunk`: the longest `where`.
base::Result<std::unique_ptr<Splitter>> make_splitter(const Source& source, std::uint64_t chunk, std::uint64_t inline_limit);

}  // namespace pario::records
