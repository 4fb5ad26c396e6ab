#include <gtest/gtest.h>

#include <vector>

#include "instruments/model/model.hpp"

namespace pario::model {
namespace {

using plan::Direction;

Machine eight_targets() {
  Machine machine;
  machine.targets = 8;
  machine.write_rate = 100, machine.read_rate = 200;
  return machine;
}

Flow flow(std::uint32_t node, std::uint32_t target, std::uint32_t targets, std::uint64_t bytes) {
  return {.node = node, .first_target = target, .targets = targets, .bytes = bytes};
}

TEST(Cost, BytesTakeTheTimeOfTheirTargets) {
  EXPECT_DOUBLE_EQ(cost(eight_targets(), {.flows = {flow(0, 0, 1, 1000)}}).seconds, 10);
  EXPECT_DOUBLE_EQ(cost(eight_targets(), {.flows = {flow(0, 6, 4, 1000)}}).seconds, 2.5);
  EXPECT_DOUBLE_EQ(
      cost(eight_targets(), {.direction = Direction::read, .flows = {flow(0, 0, 1, 1000)}}).seconds,
      5);
}

TEST(Cost, FlowsShareCommonResources) {
  EXPECT_NEAR(cost(eight_targets(), {.flows = {flow(0, 0, 1, 500), flow(1, 0, 1, 500)}}).seconds,
              10, 1e-6);
  EXPECT_NEAR(cost(eight_targets(), {.flows = {flow(0, 0, 1, 500), flow(1, 1, 1, 500)}}).seconds, 5,
              1e-6);
}

TEST(Cost, OtherFlowsGetTheShareOfAnEndedFlow) {
  EXPECT_NEAR(cost(eight_targets(), {.flows = {flow(0, 0, 1, 300), flow(1, 0, 1, 900)}}).seconds,
              12, 1e-6);
}

TEST(Cost, SharesAreMaxMinFair) {
  // Node 0 moves at most 50 a second: its flow to target 0 gets 50, and so does the other flow of
  // target 0 until it is alone.
  Machine machine = eight_targets();
  machine.node_rate = 50;
  EXPECT_NEAR(cost(machine, {.flows = {flow(0, 0, 8, 500), flow(1, 0, 1, 500)}}).seconds, 10, 1e-6);
  machine.network_rate = 80;
  const Cost both = cost(machine, {.flows = {flow(0, 0, 8, 500), flow(1, 0, 8, 500)}});
  EXPECT_NEAR(both.seconds, 12.5, 1e-6);
  EXPECT_EQ(both.bound, Bound::network);
}

TEST(Cost, RequestsCostBesideTheirBytes) {
  Machine machine = eight_targets();
  machine.request_seconds = 0.5, machine.round_trip = 1, machine.handover_seconds = 2;
  Flow small = flow(0, 0, 1, 100);
  small.requests = 10;
  EXPECT_DOUBLE_EQ(cost(machine, {.flows = {small}}).seconds, 6);
  small.depth = 1;  // waits for each request
  EXPECT_DOUBLE_EQ(cost(machine, {.flows = {small}}).seconds, 16);
  small.handovers = 10;
  EXPECT_DOUBLE_EQ(cost(machine, {.flows = {small}}).seconds, 36);
}

TEST(Cost, OneRequestAtATimeKeepsOneTargetBusy) {
  Flow one = flow(0, 0, 8, 800);
  one.depth = 1;
  EXPECT_DOUBLE_EQ(cost(eight_targets(), {.flows = {one}}).seconds, 8);
  one.ranks = 4;
  const Cost of_four = cost(eight_targets(), {.flows = {one}});
  EXPECT_DOUBLE_EQ(of_four.seconds, 2);
  EXPECT_EQ(of_four.bound, Bound::ranks);
}

TEST(Cost, MetadataAndPartsWithoutOverlapAddUp) {
  Machine machine = eight_targets();
  machine.open_seconds = 0.25, machine.create_seconds = 0.5, machine.exchange_rate = 50;
  Phase phase{.flows = {flow(0, 0, 1, 200)}, .opens = 4, .creates = 2, .exchanged = 200};
  EXPECT_DOUBLE_EQ(cost(machine, phase).seconds, 2 + 4);
  phase.overlapped = false;
  EXPECT_DOUBLE_EQ(cost(machine, phase).seconds, 2 + 4 + 2);
}

TEST(Cost, NothingToDoAndNothingThatLimitsTakeNoTime) {
  EXPECT_EQ(cost(eight_targets(), {}).seconds, 0);
  EXPECT_EQ(cost(Machine{}, {.flows = {flow(0, 0, 1, 1000), flow(3, 0, 1, 0)}}).seconds, 0);
}

TEST(Cost, TenThousandRanksOnAThousandTargets) {
  Machine machine = eight_targets();
  machine.targets = 1000, machine.node_rate = 1e4;
  Phase phase;
  for (std::uint32_t rank = 0; rank < 10'000; ++rank)
    phase.flows.push_back(flow(rank / 32, rank % 1000, 1000, 1000));
  EXPECT_NEAR(cost(machine, phase).seconds, 100, 1e-3);
}

TEST(Cost, FullResourcesStayFullWhileOthersFill) {
  // 3000 flows fill target 0, whose sums then cancel except for a rounding error; the last flow
  // rises alone on target 1.
  Machine machine = eight_targets();
  machine.node_rate = 1e6;
  Phase phase;
  for (std::uint32_t i = 0; i < 3000; ++i) phase.flows.push_back(flow(i, 0, 1, 7 + i % 3));
  phase.flows.push_back(flow(0, 1, 1, 100));
  EXPECT_NEAR(cost(machine, phase).seconds, 240, 5);
}

TEST(Cost, DifferentFlowsAreNoFasterThanTheirSharedResource) {
  std::uint64_t state = 1;
  const auto below = [&state](std::uint64_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
  };
  for (int round = 0; round < 200; ++round) {
    Machine machine = eight_targets();
    machine.node_rate = static_cast<double>(below(300)), machine.request_seconds = 0.01;
    Phase phase;
    for (std::uint64_t i = 0; i <= below(12); ++i) {
      Flow some = flow(static_cast<std::uint32_t>(below(3)), static_cast<std::uint32_t>(below(8)),
                       static_cast<std::uint32_t>(1 + below(8)), below(5000));
      some.requests = below(20), some.depth = static_cast<std::uint32_t>(below(3));
      phase.flows.push_back(some);
    }
    const Cost found = cost(machine, phase);
    double alone = 0;
    for (const Flow& some : phase.flows) alone += cost(machine, {.flows = {some}}).seconds;
    EXPECT_GE(found.seconds, found.busiest_target * (1 - 1e-6));
    EXPECT_LE(found.seconds, alone * 1.021 + 1e-6);
  }
}

}  // namespace
}  // namespace pario::model
