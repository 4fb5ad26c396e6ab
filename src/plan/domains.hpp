// How large windows are, how many are in memory, and which nodes own them.
#pragma once

#include "plan/facts.hpp"

namespace pario::plan {

/// Fills the members of a plan of way `windows` that say so; direction and span are set.
void place_windows(Plan& plan, const Facts& facts, const layout::StripeLayout& layout, const hints::FileHints& hints);

}  // namespace pario::plan
