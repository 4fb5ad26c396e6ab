// The size of windows, their number in memory, and the nodes that own them.
#pragma once

#include "parallel/plan/facts.hpp"

namespace pario::plan {

/// Fills the members of a plan of way `windows` that describe windows; direction and span are set.
void place_windows(Plan& plan, const Facts& facts, const layout::StripeLayout& layout,
                   const hints::FileHints& hints);

}  // namespace pario::plan
