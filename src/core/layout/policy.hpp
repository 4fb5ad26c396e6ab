// The policy for the stripes of new files: the table policy.def. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/base/base.hpp"
#include "core/layout/striping.hpp"

namespace pario::layout {

/// The expected properties of a new file.
struct Expected {
  std::uint64_t size = 0;     ///< bytes
  std::uint32_t writers = 1;  ///< processes that write it (or read it) at the same time
  std::uint32_t ranks = 0;    ///< of the job; 0: as many as writers
  std::uint32_t targets = 0;  ///< of the file system; 0: not known
  std::uint32_t files = 1;    ///< such files at the same time, which share the targets
};

/// A row of policy.def.
struct StripeRule {
  const char* name;
  base::Extent sizes;         ///< bytes of the file
  std::uint32_t writers;      ///< most processes; 0: any number
  std::uint32_t least, most;  ///< stripes
  std::uint64_t per_target;   ///< least bytes of a target
  std::uint64_t unit;         ///< bytes per stripe
  const char* reason;
};
std::span<const StripeRule> stripe_rules();

struct StripeChoice {
  Striping striping;
  const StripeRule* rule;  ///< never null; of static storage
};
StripeChoice choose_stripes(const Expected& expected);

/// The stripes that were fastest when a file of `size` bytes was measured, used by `writers`
/// processes.
struct MeasuredStripes {
  std::uint64_t size = 0;
  std::uint32_t writers = 0;
  Striping striping = {};
};
/// The difference of an expected file from a measured one, as the logarithm of a factor. Infinite
/// if the measurement says nothing about it: bytes or processes differ by more than a factor of
/// four, or only one of the files is shared.
double compare_with(const MeasuredStripes& measured, const Expected& expected);

/// The parts of a file of unknown size, for a file system that stripes parts differently: each part
/// has the stripes of a file that ends there. No heap.
struct StripedParts {
  std::array<StripedPart, 8> ranges = {};
  std::size_t count = 0;
  std::span<const StripedPart> parts() const { return {ranges.data(), count}; }
};
/// Returns the parts for a file of unknown size; ignores expected.size.
StripedParts growing_stripes(Expected expected);

}  // namespace pario::layout
