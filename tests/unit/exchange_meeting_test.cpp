// Meetings of ranks: agreement, failures, and absent ranks.
#include <thread>

#include "exchange_world.hpp"

namespace pario::exchange {
namespace {

const std::vector<std::vector<int>> kShapes = {{0},
                                               {0, 0},
                                               {0, 1},
                                               {0, 1, 0},
                                               {0, 0, 1, 2, 1},
                                               {0, 1, 2, 3, 0, 0, 1},
                                               std::vector<int>(16, 0)};

class ExchangeMeeting : public testing::TestWithParam<std::vector<int>> {};
INSTANTIATE_TEST_SUITE_P(Shapes, ExchangeMeeting, testing::ValuesIn(kShapes));

TEST_P(ExchangeMeeting, AllRanksGetAllNoticesInRankOrder) {
  comm::run_as_threads(GetParam(), [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    for (std::uint64_t sequence = 1; sequence < 50; ++sequence) {
      Notice mine{.sequence = sequence,
                  .call = 3,
                  .check = sequence * 100 + static_cast<std::uint64_t>(comm->rank())};
      const auto met = exchange.meet(mine, {});
      ASSERT_TRUE(met.ok());
      ASSERT_EQ(met.value().size(), static_cast<std::size_t>(comm->size()));
      for (std::size_t rank = 0; rank < met.value().size(); ++rank) {
        ASSERT_EQ(met.value()[rank].check, sequence * 100 + rank);
        ASSERT_EQ(met.value()[rank].sequence, sequence);
      }
    }
  });
}

TEST_P(ExchangeMeeting, AllRanksReturnTheErrorOfTheLowestRank) {
  comm::run_as_threads(GetParam(), [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    for (int from = 0; from <= comm->size(); ++from) {
      base::Status mine;
      if (comm->rank() >= from)
        mine = base::Error{.number = ENOSPC,
                           .operation = "pwrite",
                           .path = "/a",
                           .where = {5, 9},
                           .rank = comm->rank(),
                           .detail = "why"};
      const base::Status all = exchange.agree(mine, {});
      ASSERT_EQ(all.ok(), from == comm->size());
      if (!all.ok()) {
        ASSERT_EQ(all.error().text(),
                  (base::Error{ENOSPC, "pwrite", "/a", {5, 9}, from, "why"}).text());
      }
    }
  });
}

TEST_P(ExchangeMeeting, ARankOutOfPatienceFailsItsNodeForGood) {
  if (GetParam().size() == 1) GTEST_SKIP() << "there is no other rank";
  std::atomic<int> gave_up = 0;
  const int last = static_cast<int>(GetParam().size()) - 1;
  comm::run_as_threads(GetParam(), [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    if (comm->rank() == last) {  // never arrives
      while (gave_up.load() < last) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    comm::Patience patience{
        .interval_ns = 5'000'000, .look = [&](std::uint64_t) -> base::Status {
          return base::Error{
              .number = ESRCH, .operation = "wait", .rank = last, .detail = "is dead"};
        }};
    const auto met = exchange.meet({.sequence = 1}, patience);
    EXPECT_FALSE(met.ok());
    EXPECT_EQ(met.error().number, ESRCH);
    EXPECT_EQ(met.error().rank, last);
    Counters counters;
    EXPECT_FALSE(exchange.agree({}, {}).ok());
    ++gave_up;
  });
}

class ExchangeFailure : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Nodes, ExchangeFailure, testing::Values(1, 2, 3));

struct Damage {
  std::vector<int> node_of;
  std::vector<Request> requests;
  plan::Plan plan;
};

Damage damage(plan::Direction direction, int nodes) {
  pattern::Random random(17);
  Damage made{any_nodes(random, 6, nodes), disjoint_requests(random, 6, 1, 0, false), {}};
  while (hull_of(made.requests).length() < 400)
    made.requests = disjoint_requests(random, 6, 1, 0, false);
  made.plan = any_plan(random, direction, made.requests, nodes, 1);
  made.plan.window = 32;
  made.plan.slots = 2;
  return made;
}

TEST_P(ExchangeFailure, OfOneWriteReachesAllRanksAndStopsNoOther) {
  const Damage made = damage(plan::Direction::write, GetParam());
  MemoryFile sink;
  sink.fails = [](std::uint64_t offset, bool writing) { return writing && offset / 32 == 3; };
  comm::run_as_threads(made.node_of, [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    const Request& request = made.requests[static_cast<std::size_t>(comm->rank())];
    std::vector<std::byte> memory(request.memory_size() + 1, std::byte{9});
    Counters counters;
    for (std::uint64_t sequence = 1; sequence < 4; ++sequence) {
      const base::Status status =
          call(exchange, sequence, made.plan, request.access(memory.data()), sink, counters);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().number, ENOSPC);
      EXPECT_EQ(status.error().where.begin, 96u);
    }
  });
  EXPECT_EQ(sink.bytes.size(), made.plan.span.length() - 32);
}

TEST_P(ExchangeFailure, OfOneReadReachesAllRanksAndStopsNoOther) {
  Damage made = damage(plan::Direction::read, GetParam());
  made.plan.whole = true;
  MemoryFile sink;
  for (std::uint64_t at = 0; at < made.plan.span.end; ++at) sink.bytes[at] = std::byte{5};
  sink.fails = [](std::uint64_t offset, bool writing) { return !writing && offset / 32 == 3; };
  std::atomic<std::uint64_t> bytes = 0;
  comm::run_as_threads(made.node_of, [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    const Request& request = made.requests[static_cast<std::size_t>(comm->rank())];
    std::vector<std::byte> memory(request.memory_size() + 1);
    Counters counters;
    const base::Status status =
        call(exchange, 1, made.plan, request.access(memory.data()), sink, counters);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().number, EIO);
    bytes += exchange.bytes_read();
  });
  EXPECT_EQ(bytes.load(), made.plan.span.length() - 32);
}

TEST_P(ExchangeFailure, OfAReadOfHolesStillWritesTheRuns) {
  Damage made = damage(plan::Direction::write, GetParam());
  made.requests[2].file.clear();  // leaves holes
  made.requests[2].position = 0;
  made.plan.holes = plan::Holes::modify;
  MemoryFile sink;
  sink.fails = [](std::uint64_t, bool writing) { return !writing; };
  std::size_t expected = 0;
  for (const Request& request : made.requests) expected += request.file.size();
  comm::run_as_threads(made.node_of, [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    const Request& request = made.requests[static_cast<std::size_t>(comm->rank())];
    std::vector<std::byte> memory(request.memory_size() + 1, std::byte{9});
    Counters counters;
    EXPECT_TRUE(call(exchange, 1, made.plan, request.access(memory.data()), sink, counters).ok());
  });
  EXPECT_EQ(sink.bytes.size(), expected);
}

/// A rank dies in the middle of a run: the Patience of its neighbours detects it.
TEST_P(ExchangeFailure, OfARankEndsTheRunOfTheOthers) {
  const Damage made = damage(plan::Direction::write, GetParam());
  MemoryFile sink;
  std::atomic<int> ended = 0;
  comm::run_as_threads(made.node_of, [&](std::shared_ptr<comm::Comm> comm) {
    Exchange exchange(comm, 1 << 20);
    const Request& request = made.requests[static_cast<std::size_t>(comm->rank())];
    std::vector<std::byte> memory(request.memory_size() + 1, std::byte{9});
    Counters counters;
    ASSERT_TRUE(call(exchange, 1, made.plan, request.access(memory.data()), sink, counters).ok());
    Notice notice{.sequence = 2, .summary = pattern::summarise(request.access(memory.data()))};
    ASSERT_TRUE(exchange.meet(notice, {}).ok());
    if (comm->rank() == 5) {
      while (ended.load() < 5) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    const comm::Patience patience{.interval_ns = 5'000'000,
                                  .look = [](std::uint64_t) -> base::Status {
                                    return base::Error{.number = ESRCH, .rank = 5};
                                  }};
    const base::Status ran =
        exchange.run(made.plan, request.access(memory.data()), sink, patience, counters);
    const base::Status agreed = exchange.agree(ran, patience);
    EXPECT_FALSE(agreed.ok());
    ++ended;
  });
}

}  // namespace
}  // namespace pario::exchange
