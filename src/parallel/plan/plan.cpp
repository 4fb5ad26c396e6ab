#include "parallel/plan/plan.hpp"

#include <algorithm>

#include "parallel/plan/costs.hpp"
#include "parallel/plan/domains.hpp"
#include "parallel/plan/facts.hpp"

namespace pario::plan {
namespace {

constexpr std::uint64_t kLargeRun = 64 << 10;  // the cost of a request of this size is negligible
constexpr std::uint64_t kLargeWrite =
    1 << 20;                              // ranks that alternate on one file wait at every request
constexpr std::uint64_t kManyUnits = 32;  // in a run: shared units at its ends do not matter
constexpr std::uint64_t kSparse = 64;     // times the bytes: windows this sparse cost too much
constexpr std::uint64_t kSmallMemory =
    4 << 10;  // smaller pieces of memory are packed, not passed to the kernel one by one
constexpr std::uint64_t kFewPieces = 64;
/// Bytes of a rank that are kept in the time of an exchange on one node: of 16 KiB, keeping took as
/// long as exchanging (2 and 4 ranks), of 500 kB two to four times as long.
constexpr std::uint64_t kCheapCopy = 8 << 10;

hints::Choice buffering(Direction direction, const hints::FileHints& hints) {
  return direction == Direction::write ? hints.romio_cb_write : hints.romio_cb_read;
}

bool scattered_in_memory(const Facts& facts) {
  return facts.memory_pieces > kFewPieces * facts.ranks &&
         facts.bytes / facts.memory_pieces < kSmallMemory;
}

/// True if all ranks may write their runs directly: no lock unit and no cached page moves between
/// nodes.
bool units_are_kept(const Facts& facts, const Situation& situation) {
  if (situation.direction == Direction::read || facts.nodes.size() == 1) return true;
  const bool coherent = layout::traits(situation.layout.kind).byte_coherent;
  const std::uint64_t unit = situation.layout.unit;
  const std::uint64_t run = facts.average_run();
  if (coherent && (run >= kManyUnits * unit || (run >= unit && facts.granule % unit == 0)))
    return true;
  return !nodes_share_units(situation, unit);
}

/// Returns the size from which a run is moved by a request of its own.
std::uint64_t large_run(const Facts& facts, const Situation& situation) {
  if (situation.direction == Direction::read) return kLargeRun;
  const std::uint64_t large = facts.pieces <= facts.ranks ? kLargeRun : kLargeWrite;
  return on_one_node(situation.layout.kind) ? large : std::max(large, situation.layout.unit);
}

/// True if each rank moves one run of a file that only this node uses: the page cache takes it for
/// less than an exchange costs.
bool runs_are_cheap(const Facts& facts, const Situation& situation) {
  return on_one_node(situation.layout.kind) && facts.nodes.size() == 1 &&
         facts.pieces == facts.ranks && facts.bytes == facts.spans;
}

bool runs_are_large(const Facts& facts, const Situation& situation) {
  if (facts.average_run() < large_run(facts, situation)) return false;
  return units_are_kept(facts, situation);
}

/// True if windows would cover far more bytes than the pieces in them.
bool sparse(const Facts& facts, const Situation& situation, const hints::FileHints& hints) {
  const bool far_apart =
      facts.reach() / kSparse > facts.bytes && facts.average_run() >= pattern::kMaxGranule;
  const bool more_windows_than_runs =
      facts.hull.length() / hints.cb_buffer_size > 16 + facts.pieces;
  return (far_apart || more_windows_than_runs) &&
         (layout::traits(situation.layout.kind).byte_coherent || units_are_kept(facts, situation));
}

/// Returns the reason why every rank should move its own bytes directly; empty: use windows.
std::string reason_for_direct(const Facts& facts, const Situation& situation,
                              const hints::FileHints& hints) {
  const hints::Choice choice = buffering(situation.direction, hints);
  if (choice == hints::Choice::disable) return "collective buffering is disabled";
  if (choice == hints::Choice::enable || scattered_in_memory(facts)) return {};
  if (situation.direction == Direction::read && facts.bytes > facts.hull.length())
    return {};  // bytes that several ranks need are read once
  if (facts.ranks == 1 && facts.pieces == 1) return "one rank moves one run";
  const std::string runs = "runs of " + std::to_string(facts.average_run()) + " bytes";
  if (runs_are_cheap(facts, situation) || runs_are_large(facts, situation))
    return runs + " need no buffering";
  if (sparse(facts, situation, hints))
    return runs + ", " + std::to_string(facts.bytes) + " bytes in all, are too far apart";
  return {};
}

Holes holes_of(const Situation& situation, const hints::FileHints& hints) {
  if (situation.direction == Direction::read || is_tiled(situation)) return Holes::none;
  // Without locks other writers of the file are unknown, and bytes read from a page cache may be
  // stale.
  if (!layout::traits(situation.layout.kind).locks_across_nodes) return Holes::runs;
  if (hints.romio_ds_write == hints::Choice::disable) return Holes::runs;
  return hints.romio_ds_write == hints::Choice::enable ? Holes::modify : Holes::choose;
}

/// True if windows are read as a whole rather than run by run.
bool read_whole(const Facts& facts, const Situation& situation, const hints::FileHints& hints) {
  if (situation.direction == Direction::write || hints.romio_ds_read == hints::Choice::disable)
    return false;
  if (hints.romio_ds_read == hints::Choice::enable || 2 * facts.bytes >= facts.reach()) return true;
  return (facts.reach() - facts.bytes) / facts.pieces <= request_bytes(situation.layout.kind);
}

}  // namespace

Plan make_plan(const Situation& situation, const hints::FileHints& hints) {
  const Facts facts = facts_of(situation);
  Plan plan;
  plan.direction = situation.direction;
  plan.span = facts.hull;
  plan.why = "no rank moves a byte";
  if (facts.bytes == 0) return plan;
  plan.way = Way::direct;
  plan.granule = facts.granule;
  plan.why = reason_for_direct(facts, situation, hints);
  if (!plan.why.empty()) return plan;
  plan.way = Way::windows;
  plan.why = "runs of " + std::to_string(facts.average_run()) + " bytes are put together";
  place_windows(plan, facts, situation.layout, hints);
  plan.holes = holes_of(situation, hints);
  plan.request_bytes = request_bytes(situation.layout.kind);
  plan.whole = read_whole(facts, situation, hints);
  return plan;
}

bool merging_pays(const Situation& situation, const hints::FileHints& hints) {
  const Facts facts = facts_of(situation);
  if (facts.bytes <= facts.ranks * kCheapCopy) return true;
  if (on_one_node(situation.layout.kind) && facts.nodes.size() == 1) return false;
  const Plan plan = make_plan(situation, hints);
  return plan.way == Way::windows && facts.bytes < plan.aggregators.size() * plan.window;
}

}  // namespace pario::plan
