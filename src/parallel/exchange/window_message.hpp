// One message between nodes: runs of a window, and their bytes.
//
// A header, then the runs, as a bitmap like pattern::Coverage or as pairs of 32-bit numbers of
// granules, whichever is smaller; then the bytes of the runs, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/base/base.hpp"
#include "core/pattern/pattern.hpp"
#include "parallel/exchange/messages.hpp"

namespace pario::exchange {

/// Sets the bits of `run`, a part of the window `extent`.
void set_bits(pattern::Coverage coverage, base::Extent extent, base::Extent run);

/// The largest size of a message for a window of `length` bytes, without the bytes of runs.
std::uint64_t message_limit(std::uint64_t length, std::uint64_t granule);

/// Packs the runs of the union of `coverages`, with their bytes in `image` (of the window). Null:
/// runs only, a request.
Buffer pack_window_message(Buffers& buffers, base::Extent extent,
                           std::span<const pattern::Coverage> coverages, std::uint64_t granule,
                           const std::byte* image);

/// Reads a message. Both sides know extent and granule.
class WindowMessage {
 public:
  WindowMessage(std::span<const std::byte> message, base::Extent extent, std::uint64_t granule);
  std::optional<base::Extent> next();  ///< the next run; none: it was the last
  const std::byte* bytes() const { return bytes_; }
  /// The sum of the lengths of all runs.
  std::uint64_t length() const { return length_; }

 private:
  base::Extent stretch_;
  std::uint64_t granule_, length_, pairs_ = 0, at_ = 0;
  const std::byte* runs_;
  const std::byte* bytes_;
  std::optional<pattern::CoverageRuns> bitmap_;
};

}  // namespace pario::exchange
