#include "parallel/plan/domains.hpp"

#include <algorithm>
#include <bit>

#include "parallel/plan/costs.hpp"

namespace pario::plan {
namespace {

constexpr std::uint64_t kLeastWindow = 512 << 10;  // overlap of smaller windows saves no time
constexpr std::uint64_t kLeastShare =
    256 << 10;  // of a rank in a window; with less it would mostly sleep and wake
constexpr std::uint64_t kCached =
    8 << 20;  // a node's windows in this size stay in its processor's cache
constexpr std::uint64_t kLeastSlots = 3;   // one slot is filled, one is written, one is ready
constexpr std::uint64_t kLargestUnit = 4;  // times the requested buffer; larger units are divided
constexpr std::uint64_t kWritersOfLocal = 2;
// requests of one node that a server serves without competitors
constexpr std::uint64_t kWritersOfShared = 4;
constexpr std::uint64_t kMostNodesOfOneServer = 4;  // NFS: more clients only slow each other down

bool cyclic(const layout::StripeLayout& layout) {
  return layout::traits(layout.kind).cyclic_domains && layout.targets > 1;
}

/// Returns the number of bytes that should belong to one node together: a domain's unit.
std::uint64_t domain_unit(const layout::StripeLayout& layout) {
  return base::round_up(std::max(layout.unit, layout::traits(layout.kind).domain_unit),
                        pattern::kMaxGranule);
}

std::uint64_t half(std::uint64_t window) {
  return std::max(base::round_down(window / 2, pattern::kMaxGranule), pattern::kMaxGranule);
}

/// Returns the window size for cyclic domains: a stripe belongs to one node, so a window is a
/// stripe, or a part of a very large one.
std::uint64_t cyclic_window(std::uint64_t unit, std::uint64_t wanted) {
  std::uint64_t window = unit;
  while (window > kLargestUnit * wanted && window > pattern::kMaxGranule) window = half(window);
  return window;
}

/// True if one window should hold all bytes of a call: it would end before a second one had begun.
/// Several windows of a read are read at the same time; those of a write wait for each other.
bool needs_one_window(Direction direction, const Facts& facts, const layout::StripeLayout& layout,
                      std::uint64_t wanted) {
  constexpr std::uint64_t kMost = 2 * kLeastWindow;
  const std::uint64_t read = std::min(kMost, kLeastShare * std::bit_ceil(facts.node_ranks));
  const std::uint64_t most = direction == Direction::write ? kMost : read;
  return on_one_node(layout.kind) && facts.nodes.size() == 1 &&
         facts.hull.length() <= std::min(most, wanted);
}

/// Returns the least size of windows, which begin at its multiples, of which one holds `extent`.
std::uint64_t window_around(base::Extent extent) {
  std::uint64_t window = kLeastWindow;
  while (extent.begin / window != (extent.end - 1) / window) window *= 2;
  return window;
}

std::uint64_t contiguous_window(const Facts& facts, std::uint64_t unit, std::uint64_t wanted) {
  if (unit > kLargestUnit * wanted) return cyclic_window(unit, wanted);
  const std::uint64_t shared =
      std::max(kLeastWindow, std::bit_floor(facts.hull.length() / (2 * facts.node_ranks)));
  return base::round_up(std::min(wanted, shared), unit);
}

/// The defaults, read from their table once; never destroyed, because files are written while the
/// process ends.
const hints::FileHints& default_hints() {
  static const hints::FileHints& hints = *new hints::FileHints(hints::default_file_hints());
  return hints;
}

/// True if windows should be so small that all stay in the cache: bytes are only copied within
/// memory, so that large windows save no requests. Not if the user sets another size.
bool is_for_the_cache(const Facts& facts, const layout::StripeLayout& layout,
                      const hints::FileHints& hints) {
  const bool asked = hints.cb_buffer_size != default_hints().cb_buffer_size;
  return !asked && on_one_node(layout.kind) && facts.nodes.size() == 1;
}

/// Returns the bytes from which calls pass the page cache by; 0: none do.
std::uint64_t direct_size(Direction direction, const layout::StripeLayout& layout) {
  return direction == Direction::write ? layout.direct_write : layout.direct_read;
}

std::uint64_t divide_up(std::uint64_t number, std::uint64_t by) { return (number + by - 1) / by; }

/// Returns the number of stripes that form the unit of a cyclic domain. Several, if calls for one
/// would go through the page cache and no node gets more targets than otherwise.
std::uint32_t stripes_together(Direction direction, const Facts& facts,
                               const layout::StripeLayout& layout) {
  const std::uint64_t least = direct_size(direction, layout), nodes = facts.nodes.size();
  const std::uint64_t most = divide_up(layout.targets, nodes);
  for (std::uint32_t count = 1; count <= most; ++count)
    if (layout.targets % count == 0 && count * layout.unit >= least &&
        divide_up(layout.targets / count, nodes) * count <= most)
      return count;
  return 1;
}

std::uint64_t wanted_window(Direction direction, const Facts& facts,
                            const layout::StripeLayout& layout, const hints::FileHints& hints) {
  if (hints.cb_buffer_size == default_hints().cb_buffer_size &&
      hints.cb_buffer_size < direct_size(direction, layout))
    return direct_size(direction, layout);
  if (!is_for_the_cache(facts, layout, hints)) return hints.cb_buffer_size;
  const std::uint64_t shared = kLeastShare * std::bit_ceil(facts.node_ranks);
  return std::min(hints.cb_buffer_size,
                  std::max(shared, std::bit_floor(kCached / hints.pario_buffers)));
}

/// Returns the largest number of slots. In reads, a window of another node keeps its slot from the
/// request to the reply: half of the slots are in flight.
std::uint64_t most_slots(const Plan& plan, const Facts& facts, const hints::FileHints& hints) {
  const bool asked = hints.pario_buffers != default_hints().pario_buffers;
  const bool under_way = plan.direction == Direction::read && facts.nodes.size() > 1;
  return std::max<std::uint64_t>(
      under_way && !asked ? 2 * hints.pario_buffers : hints.pario_buffers, 2);
}

std::uint64_t wanted_slots(const Plan& plan, const Facts& facts, const layout::StripeLayout& layout,
                           const hints::FileHints& hints) {
  const std::uint64_t most = most_slots(plan, facts, hints);
  if (!is_for_the_cache(facts, layout, hints)) return most;
  return std::clamp(kCached / plan.window, std::min(kLeastSlots, most), most);
}

/// Returns the bytes of a slot, with the coverage bits of every rank of a node.
std::uint64_t slot_bytes(std::uint64_t window, const Facts& facts) {
  return window + facts.node_ranks * (window / facts.granule + 7) / 8;
}

std::uint64_t window_that_fits(std::uint64_t window, const Facts& facts, std::uint64_t memory) {
  while (2 * slot_bytes(window, facts) > memory && window > pattern::kMaxGranule)
    window = half(window);
  return window;
}

std::uint64_t units_of(const Plan& plan) {
  const std::uint64_t unit = std::max(plan.unit, plan.window);
  return (plan.span.end - 1) / unit - plan.span.begin / unit + 1;
}

std::uint64_t owners_that_pay(const Plan& plan, const Facts& facts,
                              const layout::StripeLayout& layout, const hints::FileHints& hints) {
  std::uint64_t owners = facts.nodes.size();
  if (hints.cb_nodes > 0)
    owners = std::min<std::uint64_t>(owners, hints.cb_nodes);
  else if (layout.kind == layout::Kind::nfs)
    owners = std::min(owners, kMostNodesOfOneServer);
  if (plan.cyclic) owners = std::min<std::uint64_t>(owners, plan.targets);
  return std::clamp<std::uint64_t>(units_of(plan), 1, owners);
}

/// Selects `count` evenly spread nodes.
std::vector<int> select_evenly(const std::vector<int>& nodes, std::uint64_t count) {
  std::vector<int> chosen;
  chosen.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) chosen.push_back(nodes[i * nodes.size() / count]);
  return chosen;
}

/// Explains why fewer nodes than the hint requests own windows; empty: no fewer nodes do, or the
/// hint is not set.
std::string why_fewer(const Plan& plan, const Facts& facts, const hints::FileHints& hints) {
  const std::uint64_t owners = plan.aggregators.size();
  if (hints.cb_nodes <= owners) return {};
  const char* const bound = owners == facts.nodes.size() ? "there are no more"
                            : plan.cyclic && owners == plan.targets
                                ? "each has a stripe target of its own"
                                : "the call has no more windows";
  return "; on " + std::to_string(owners) +
         " nodes, not cb_nodes=" + std::to_string(hints.cb_nodes) + ": " + bound;
}

/// Returns the ranks of a node that may write at the same time. The inode lock of a local file
/// admits one writer; a second one waits for it, so that the file is never idle.
std::uint64_t writers(const Facts& facts, const layout::StripeLayout& layout,
                      const hints::FileHints& hints) {
  if (hints.pario_writers > 0) return std::min(hints.pario_writers, facts.node_ranks);
  return std::min(on_one_node(layout.kind) ? kWritersOfLocal : kWritersOfShared, facts.node_ranks);
}

}  // namespace

void place_windows(Plan& plan, const Facts& facts, const layout::StripeLayout& layout,
                   const hints::FileHints& hints) {
  plan.cyclic = cyclic(layout);
  const std::uint32_t together = plan.cyclic ? stripes_together(plan.direction, facts, layout) : 1;
  plan.targets = plan.cyclic ? layout.targets / together : 1;
  plan.unit = domain_unit(layout) * together;
  plan.granule = facts.granule;
  const std::uint64_t wanted = wanted_window(plan.direction, facts, layout, hints);
  std::uint64_t window =
      plan.cyclic ? cyclic_window(plan.unit, wanted) : contiguous_window(facts, plan.unit, wanted);
  if (needs_one_window(plan.direction, facts, layout, wanted)) window = window_around(facts.hull);
  plan.window = window_that_fits(window, facts, hints.pario_memory);
  const std::uint64_t room = hints.pario_memory / slot_bytes(plan.window, facts);
  plan.slots = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(room, 2, wanted_slots(plan, facts, layout, hints)));
  plan.aggregators = select_evenly(facts.nodes, owners_that_pay(plan, facts, layout, hints));
  plan.why += why_fewer(plan, facts, hints);
  plan.writers = static_cast<std::uint32_t>(writers(facts, layout, hints));
}

int Plan::owner(std::uint64_t window_number) const {
  const std::uint64_t nodes = aggregators.size();
  const std::uint64_t begin = std::max(window_number * window, span.begin);
  if (cyclic) return aggregators[begin / (unit == 0 ? window : unit) % targets % nodes];
  const std::uint64_t together = std::max(unit, window);
  const std::uint64_t first = span.begin / together, count = (span.end - 1) / together - first + 1;
  return aggregators[(begin / together - first) * nodes / count];
}

}  // namespace pario::plan
