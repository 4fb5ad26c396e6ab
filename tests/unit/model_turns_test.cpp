#include <gtest/gtest.h>

#include <vector>

#include "instruments/model/model.hpp"

namespace pario::model {
namespace {

using plan::Direction;

Machine slow_locks() {
  Machine machine;
  machine.targets = 2;
  machine.write_rate = 100;
  machine.handover_seconds = 3;
  return machine;
}

using Clients = std::vector<std::vector<Request>>;

TEST(Turns, OneClientKeepsItsLocks) {
  const Turns turns =
      take_turns(slow_locks(), Direction::write, Clients{{{0, 100}, {1, 100}, {0, 100}}});
  EXPECT_EQ(turns.handovers, 0u);
  EXPECT_DOUBLE_EQ(turns.seconds, 3);
}

TEST(Turns, ClientsOfOneUnitTakeItFromEachOtherEachTime) {
  const Turns turns = take_turns(slow_locks(), Direction::write,
                                 Clients{{{0, 100}, {0, 100}}, {{0, 100}, {0, 100}}});
  EXPECT_EQ(turns.handovers, 3u);
  EXPECT_DOUBLE_EQ(turns.seconds, 4 + 3 * 3);
}

TEST(Turns, UnitsOfDifferentTargetsAreServedSideBySide) {
  const Turns turns = take_turns(slow_locks(), Direction::write,
                                 Clients{{{0, 100}, {0, 100}}, {{1, 100}, {1, 100}}});
  EXPECT_EQ(turns.handovers, 0u);
  EXPECT_DOUBLE_EQ(turns.seconds, 2);
}

TEST(Turns, ARoundTripIsWaitedForByTheClientOnly) {
  Machine machine = slow_locks();
  machine.round_trip = 5, machine.handover_seconds = 0;
  EXPECT_DOUBLE_EQ(take_turns(machine, Direction::write, Clients{{{0, 100}, {0, 100}}}).seconds,
                   12);
  EXPECT_DOUBLE_EQ(take_turns(machine, Direction::write, Clients{{{0, 100}}, {{0, 100}}}).seconds,
                   7);
}

TEST(Turns, AMillionRequestsAreTheSameEachTime) {
  Clients clients(100);
  for (std::uint32_t client = 0; client < clients.size(); ++client)
    for (std::uint32_t i = 0; i < 2000; ++i) clients[client].push_back({(client + i) % 7, 10});
  const Turns once = take_turns(slow_locks(), Direction::write, clients),
              again = take_turns(slow_locks(), Direction::write, clients);
  EXPECT_EQ(once.seconds, again.seconds);
  EXPECT_GT(once.handovers, 190'000u);
}

}  // namespace
}  // namespace pario::model
