// Plans of independent accesses and of windows with holes: one request per run, or one for the runs
// and the holes between them.
#include <algorithm>

#include "parallel/plan/costs.hpp"
#include "parallel/plan/plan.hpp"

namespace pario::plan {
namespace {

/// True if sieving is chosen by the hint or, if that is automatic, by cost.
bool sieve_pays(hints::Choice choice, std::uint64_t listed, std::uint64_t sieved) {
  return choice == hints::Choice::enable || (choice == hints::Choice::automatic && sieved < listed);
}

IndependentPlan plan_read(const pattern::Summary& access, const layout::StripeLayout& layout,
                          const hints::FileHints& hints) {
  const std::uint64_t listed = access.pieces * request_bytes(layout.kind) + access.bytes;
  if (!sieve_pays(hints.romio_ds_read, listed, access.span.length()))
    return {Independent::list, 0, false,
            "reading each run costs less than reading the gaps between them"};
  return {Independent::sieve, hints.ind_rd_buffer_size, false,
          "runs are small and close to each other"};
}

IndependentPlan plan_write(const pattern::Summary& access, const layout::StripeLayout& layout,
                           const hints::FileHints& hints) {
  if (!layout::traits(layout.kind).locks_across_nodes)
    return {Independent::list, 0, false,
            "no sieving: locks of this file system do not hold between nodes"};
  if (access.bytes >= access.span.length())
    return {Independent::list, 0, false, "the runs follow each other without a gap"};
  const std::uint64_t window = hints.ind_wr_buffer_size;
  const std::uint64_t requests = 2 * ((access.span.length() - 1) / window + 1);
  const std::uint64_t listed = access.pieces * request_bytes(layout.kind) + access.bytes;
  const std::uint64_t sieved = requests * request_bytes(layout.kind) + 2 * access.span.length();
  if (!sieve_pays(hints.romio_ds_write, listed, sieved))
    return {Independent::list, 0, false,
            "writing each run costs less than writing back the gaps between them"};
  return {Independent::sieve, window, true, "runs are small and close to each other"};
}

}  // namespace

IndependentPlan plan_independent(Direction direction, const pattern::Summary& access,
                                 const layout::StripeLayout& layout,
                                 const hints::FileHints& hints) {
  if (access.bytes == 0) return {Independent::contiguous, 0, false, "nothing to move"};
  // A byte count equal to the span is no proof: read pieces may overlap and leave holes.
  if (access.pieces <= 1 && access.bytes == access.span.length())
    return {Independent::contiguous, 0, false, "one run"};
  return direction == Direction::read ? plan_read(access, layout, hints)
                                      : plan_write(access, layout, hints);
}

Holes choose_holes(const Plan& plan, std::uint64_t runs, std::uint64_t covered_bytes,
                   std::uint64_t hole_bytes) {
  if (hole_bytes == 0) return Holes::none;
  if (plan.holes != Holes::choose) return plan.holes;
  const std::uint64_t by_runs = runs * plan.request_bytes;
  const std::uint64_t modified = 2 * plan.request_bytes + hole_bytes + (covered_bytes + hole_bytes);
  return by_runs <= modified ? Holes::runs : Holes::modify;
}

}  // namespace pario::plan
