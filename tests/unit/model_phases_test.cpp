#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "instruments/model/model.hpp"

namespace pario::model {
namespace {

using plan::Direction;
constexpr std::uint64_t kMiB = 1 << 20;

struct Call {
  std::vector<pattern::Summary> ranks;
  std::vector<int> nodes;
  plan::Situation on(const layout::StripeLayout& layout) const {
    return {Direction::write, ranks, nodes, layout};
  }
};

/// Each rank writes `type` once, at its own offset.
template <class Place>
Call call(int ranks, int on_a_node, const std::string& type, Place place) {
  Call all;
  for (int rank = 0; rank < ranks; ++rank) {
    pattern::Access access;
    access.view.filetype = pattern::TypeMap::parse(type).value();
    access.view.displacement = place(static_cast<std::uint64_t>(rank));
    access.bytes = access.view.filetype.size();
    all.ranks.push_back(pattern::summarise(access));
    all.nodes.push_back(rank / on_a_node);
  }
  return all;
}

struct Sums {
  std::uint64_t bytes = 0, requests = 0, handovers = 0;
};
Sums sums(const Phase& phase) {
  Sums all;
  for (const Flow& flow : phase.flows)
    all.bytes += flow.bytes, all.requests += flow.requests, all.handovers += flow.handovers;
  return all;
}

Sums collectively(const Call& call, const layout::StripeLayout& layout) {
  const plan::Situation situation = call.on(layout);
  return sums(phase_of(situation, plan::make_plan(situation, hints::default_file_hints())));
}

TEST(Phases, FortyEightRanksOfAMillionBytesAreARequestPerStripeOrBlock) {
  const Call ranks = call(48, 16, "1000000", [](std::uint64_t rank) { return rank * 1'000'000; });
  EXPECT_EQ(collectively(ranks, {layout::Kind::lustre, kMiB, 8}).requests, 46u);
  EXPECT_EQ(collectively(ranks, {layout::Kind::gpfs, 16 * kMiB, 1}).requests, 3u);
  EXPECT_EQ(collectively(ranks, {layout::Kind::lustre, kMiB, 8}).bytes, 48'000'000u);
}

TEST(Phases, TheBytesThatAnAggregatorTakesInAreCounted) {
  const Call ranks = call(48, 16, "1000000", [](std::uint64_t rank) { return rank * 1'000'000; });
  const plan::Situation situation = ranks.on({layout::Kind::lustre, kMiB, 3});
  hints::FileHints hints = hints::default_file_hints();
  EXPECT_EQ(phase_of(situation, plan::make_plan(situation, hints)).exchanged,
            15 * kMiB + (48'000'000 - 45 * kMiB));
  hints.cb_nodes = 1;
  EXPECT_EQ(phase_of(situation, plan::make_plan(situation, hints)).exchanged, 48'000'000u);
}

/// A plan's windows, walked one by one: node, target, bytes, requests.
using Walked =
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>>;
Walked walk_windows(const plan::Plan& plan, const layout::StripeLayout& layout) {
  Walked all;
  for (std::uint64_t w = plan.first_window(); w < plan.first_window() + plan.windows(); ++w)
    for (std::uint64_t at = plan.extent_of(w).begin, end = 0; at < plan.extent_of(w).end;
         at = end) {
      end = std::min(plan.extent_of(w).end, at / layout.unit * layout.unit + layout.unit);
      auto& [bytes, requests] =
          all[{static_cast<std::uint32_t>(plan.owner(w)), layout.target_of(at)}];
      bytes += end - at, requests += 1;
    }
  return all;
}

TEST(Phases, CyclesOfWindowsEqualAWalkOfAllWindows) {
  for (const auto kind : {layout::Kind::lustre, layout::Kind::gpfs, layout::Kind::local})
    for (const std::uint64_t unit : {kMiB / 16, kMiB, 16 * kMiB})
      for (const std::uint32_t targets : {1u, 3u, 7u, 8u})
        for (const std::uint64_t part : {std::uint64_t{1'000'000}, 24 * kMiB, 50'000'001ul}) {
          const Call ranks = call(24, 4, std::to_string(part),
                                  [&](std::uint64_t rank) { return 12'345 + rank * part; });
          const plan::Situation situation = ranks.on({kind, unit, targets});
          for (const std::uint32_t nodes : {0u, 1u, 4u}) {
            hints::FileHints hints = hints::default_file_hints();
            hints.cb_nodes = nodes, hints.romio_cb_write = hints::Choice::enable;
            const plan::Plan plan = plan::make_plan(situation, hints);
            ASSERT_EQ(plan.way, plan::Way::windows);
            Walked found;
            for (const Flow& flow : phase_of(situation, plan).flows)
              found[{flow.node, flow.first_target}] = {flow.bytes, flow.requests};
            EXPECT_EQ(found, walk_windows(plan, situation.layout))
                << plan.text() << ", unit " << unit << ", targets " << targets;
          }
        }
}

TEST(Phases, OfTheLargestFilesAreComputed) {
  constexpr std::uint64_t kPart = std::uint64_t{1} << 50;  // too many windows to walk all
  const Call ranks =
      call(1024, 16, std::to_string(kPart), [](std::uint64_t rank) { return rank * kPart; });
  hints::FileHints hints = hints::default_file_hints();
  hints.romio_cb_write = hints::Choice::enable;
  for (const auto kind : {layout::Kind::lustre, layout::Kind::gpfs}) {
    const plan::Situation situation = ranks.on({kind, kMiB, 100});
    EXPECT_EQ(sums(phase_of(situation, plan::make_plan(situation, hints))).bytes, 1024 * kPart);
  }
}

/// The largest array of S3D's checkpoint, in runs of 64 bytes.
Call s3d() {
  return call(16, 16, "11x(20x(20x64/256)/10240)/409600", [](std::uint64_t rank) {
    return 512 + rank % 4 * 64 + rank / 4 % 2 * 5120 + rank / 8 * 204800;
  });
}

TEST(Phases, InterleavedRunsTakeTheirUnitEachTime) {
  hints::FileHints hints = hints::default_file_hints();
  hints.romio_ds_write = hints::Choice::disable;
  const Sums listed = sums(independent_phase(s3d().on({layout::Kind::gpfs, 16 * kMiB, 1}), hints));
  EXPECT_EQ(listed.requests, 70'400u);
  EXPECT_EQ(listed.handovers, 70'400u);
  EXPECT_EQ(listed.bytes, 70'400u * 64);
}

TEST(Phases, SievingReadsAndWritesEveryWindow) {
  hints::FileHints hints = hints::default_file_hints();
  hints.ind_wr_buffer_size = 4 * kMiB;
  const Sums sieved = sums(independent_phase(s3d().on({layout::Kind::gpfs, 16 * kMiB, 1}), hints));
  EXPECT_EQ(sieved.requests, 2u * 2 * 16);
  EXPECT_EQ(sieved.handovers, 2u * 16);
  EXPECT_GT(sieved.bytes, 2 * 16 * 4 * kMiB);
}

TEST(Phases, NeighboursShareTheUnitsAtTheirEndsOnly) {
  const layout::StripeLayout layout{layout::Kind::lustre, kMiB, 4};
  hints::FileHints hints = hints::default_file_hints();
  const auto aligned = call(8, 1, "4194304", [](std::uint64_t rank) { return rank * 4 * kMiB; });
  EXPECT_EQ(sums(independent_phase(aligned.on(layout), hints)).handovers, 0u);
  const auto shifted =
      call(8, 1, "4194304", [](std::uint64_t rank) { return 100 + rank * 4 * kMiB; });
  EXPECT_EQ(sums(independent_phase(shifted.on(layout), hints)).handovers, 8u);
}

TEST(Phases, APieceIsARequestForEachUnitThatItTouches) {
  const layout::StripeLayout layout{layout::Kind::lustre, kMiB, 4};
  const auto aligned = call(8, 1, "4194304", [](std::uint64_t rank) { return rank * 4 * kMiB; });
  EXPECT_EQ(sums(independent_phase(aligned.on(layout), hints::default_file_hints())).requests,
            8u * 4);
  const auto shifted =
      call(8, 1, "4194304", [](std::uint64_t rank) { return 100 + rank * 4 * kMiB; });
  EXPECT_EQ(sums(independent_phase(shifted.on(layout), hints::default_file_hints())).requests,
            8u * 5);
}

TEST(Phases, ReadersTakeNoLocks) {
  const Call ranks = s3d();
  const plan::Situation reading{
      Direction::read, ranks.ranks, ranks.nodes, {layout::Kind::gpfs, 16 * kMiB, 1}};
  EXPECT_EQ(sums(independent_phase(reading, hints::default_file_hints())).handovers, 0u);
}

TEST(Phases, RanksThatWriteNothingAreNotThere) {
  Call ranks = s3d();
  for (std::size_t rank = 1; rank < ranks.ranks.size(); ++rank) ranks.ranks[rank] = {};
  EXPECT_EQ(
      independent_phase(ranks.on({layout::Kind::gpfs, 16 * kMiB, 1}), hints::default_file_hints())
          .flows.size(),
      1u);
}

}  // namespace
}  // namespace pario::model
