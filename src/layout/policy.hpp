// How many targets a new file should have. Pure; the choices are the table policy.def.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/base.hpp"
#include "layout/striping.hpp"

namespace pario::layout {

/// What is known of a file before it is there.
struct Expected {
  std::uint64_t size = 0;     ///< bytes
  std::uint32_t writers = 1;  ///< processes that write it (or read it) at the same time
  std::uint32_t ranks = 0;    ///< of the job; 0: as many as writers
  std::uint32_t targets = 0;  ///< of the file system; 0: not known
  std::uint32_t files = 1;    ///< such files at the same time: they share the targets
};

/// A row of the table.
struct StripeRule {
  const char* name;
  base::Extent sizes;         ///< bytes of the file
  std::uint32_t writers;      ///< at most; 0: any number
  std::uint32_t least, most;  ///< stripes
  std::uint64_t per_target;   ///< bytes that a target holds at least
  std::uint64_t unit;         ///< bytes per stripe
  const char* reason;
};
std::span<const StripeRule> stripe_rules();

struct StripeChoice {
  Striping striping;
  const StripeRule* rule;  ///< never null; of static storage
};
StripeChoice choose_stripes(const Expected& expected);

/// Parts of a file of which nobody knows what it will come to, for a file system that can stripe them differently: each as the table says
/// of a file that ends there. No heap.
struct GrowingStripes {
  std::array<StripedPart, 8> room = {};
  std::size_t count = 0;
  std::span<const StripedPart> parts() const { return {room.data(), count}; }
};
/// The size is not looked at.
GrowingStripes growing_stripes(Expected expected);

}  // namespace pario::layout
