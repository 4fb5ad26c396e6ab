// One message between nodes: some runs of a window's stretch, and their bytes.
//
// A header, then the runs, as a bitmap like pattern::Coverage or as pairs of 32-bit numbers of granules, whichever is smaller; then the
// bytes of the runs, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/base.hpp"
#include "exchange/mail.hpp"
#include "pattern/pattern.hpp"

namespace pario::exchange {

/// Sets the bits of `run`, a part of `stretch`.
void set_bits(pattern::Coverage coverage, base::Extent stretch, base::Extent run);

/// The largest parcel of a stretch; without bytes.
std::uint64_t parcel_limit(std::uint64_t length, std::uint64_t granule);

/// Runs are those of the union of `coverages`. `image` (of the stretch) null: runs only, the bytes are asked for.
Buffer pack_parcel(Buffers& buffers, base::Extent stretch, std::span<const pattern::Coverage> coverages, std::uint64_t granule,
                   const std::byte* image);

/// Reads a parcel. Stretch and granule are known to both sides.
class Parcel {
 public:
  Parcel(std::span<const std::byte> message, base::Extent stretch, std::uint64_t granule);
  std::optional<base::Extent> next();  ///< the runs, one by one
  const std::byte* bytes() const { return bytes_; }
  /// Sum of the lengths of all runs.
  std::uint64_t length() const { return length_; }

 private:
  base::Extent stretch_;
  std::uint64_t granule_, length_, pairs_ = 0, at_ = 0;
  const std::byte* runs_;
  const std::byte* bytes_;
  std::optional<pattern::CoverageRuns> bitmap_;
};

}  // namespace pario::exchange
