// The conformance suite of comm, as functions that all ranks call: for the members self, threads
// and callback (comm_conformance_test.cpp) and for each MPI (comm_ranks.cpp).
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/comm/comm.hpp"

namespace pario::comm::conformance {

inline std::vector<std::byte> bytes_of(int seed, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(seed) * 31 + i * 7 + i / 251);
  return bytes;
}

inline constexpr std::size_t kSizes[] = {0, 1, 24, 4096, 5000, 100'001};

inline void TopologyNumbersNodesByTheirLowestRank(Comm& comm) {
  const Topology& topology = comm.topology();
  ASSERT_EQ(comm.size(), static_cast<int>(topology.node_of.size()));
  EXPECT_EQ(topology.node_of[0], 0);
  int last_leader = -1;
  for (const auto& ranks : topology.ranks_of) {
    EXPECT_GT(ranks.front(), last_leader);
    last_leader = ranks.front();
  }
  EXPECT_EQ(comm.node_ranks()[static_cast<std::size_t>(comm.local_rank())], comm.rank());
  EXPECT_EQ(comm.leader(), comm.node_ranks().front());
}

inline void AllgatherGivesEverybodyThePartsOfAll(Comm& comm) {
  for (const std::size_t each : kSizes) {
    const auto mine = bytes_of(comm.rank(), each);
    std::vector<std::byte> all(each * static_cast<std::size_t>(comm.size())), expected;
    ASSERT_TRUE(comm.allgather(mine.data(), each, all.data()).ok());
    for (int rank = 0; rank < comm.size(); ++rank) {
      const auto part = bytes_of(rank, each);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    EXPECT_EQ(all, expected);
  }
}

inline void BroadcastGivesEverybodyTheBytesOfTheRoot(Comm& comm) {
  for (int root = 0; root < comm.size(); ++root) {
    for (const std::size_t size : kSizes) {
      auto data = comm.rank() == root ? bytes_of(root, size) : std::vector<std::byte>(size);
      ASSERT_TRUE(comm.broadcast(data.data(), size, root).ok());
      EXPECT_EQ(data, bytes_of(root, size));
    }
  }
}

inline void NobodyLeavesABarrierBeforeAllHaveCome(Comm& comm) {
  const auto arrived = comm.share(sizeof(std::atomic<int>));
  ASSERT_TRUE(arrived);
  auto& count = *reinterpret_cast<std::atomic<int>*>(arrived->data());
  for (int turn = 1; turn <= 50; ++turn) {
    count.fetch_add(1);
    ASSERT_TRUE(comm.barrier().ok());
    EXPECT_GE(count.load(), turn * comm.local_size());
    ASSERT_TRUE(comm.barrier().ok());
  }
}

inline void SharedMemoryIsZeroAndCommonToTheNode(Comm& comm) {
  const auto memory = comm.share(10'000);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->size(), 10'000u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 4096, 0u);
  EXPECT_EQ(memory->data()[9'999], std::byte{0});
  ASSERT_TRUE(comm.barrier().ok());
  memory->data()[comm.rank()] = static_cast<std::byte>(comm.rank() + 1);
  ASSERT_TRUE(comm.barrier().ok());
  for (int rank = 0; rank < comm.size(); ++rank) {
    const bool same_node = comm.topology().node_of[static_cast<std::size_t>(rank)] == comm.node();
    EXPECT_EQ(memory->data()[rank], static_cast<std::byte>(same_node ? rank + 1 : 0));
  }
}

inline void MessagesOfOneTagKeepTheirOrderAndTagsDoNotMeet(Comm& comm) {
  const int to = (comm.rank() + 1) % comm.size(),
            from = (comm.rank() + comm.size() - 1) % comm.size();
  const auto first = bytes_of(comm.rank(), 3000), second = bytes_of(comm.rank() + 100, 70'000),
             other = bytes_of(comm.rank() + 200, 5);
  std::vector<std::byte> got_first(3000), got_second(70'000), got_other(5);
  std::vector<std::unique_ptr<Pending>> messages;
  messages.push_back(comm.send(to, 0, first));
  messages.push_back(comm.send(to, 0, second));
  messages.push_back(comm.send(to, (1 << 15) - 1, other));
  messages.push_back(comm.receive(from, (1 << 15) - 1, got_other));
  messages.push_back(comm.receive(from, 0, got_first));
  messages.push_back(comm.receive(from, 0, got_second));
  ASSERT_TRUE(wait_all(messages).ok());
  EXPECT_EQ(got_first, bytes_of(from, 3000));
  EXPECT_EQ(got_second, bytes_of(from + 100, 70'000));
  EXPECT_EQ(got_other, bytes_of(from + 200, 5));
}

inline void MessagesOfTwoDoNotMeet(Comm& comm, Comm& copy) {
  const int to = (comm.rank() + 1) % comm.size(),
            from = (comm.rank() + comm.size() - 1) % comm.size();
  const std::byte one{1}, two{2};
  std::byte got_one{0}, got_two{0};
  std::vector<std::unique_ptr<Pending>> messages;
  messages.push_back(comm.send(to, 5, {&one, 1}));
  messages.push_back(copy.send(to, 5, {&two, 1}));
  messages.push_back(copy.receive(from, 5, {&got_two, 1}));
  messages.push_back(comm.receive(from, 5, {&got_one, 1}));
  ASSERT_TRUE(copy.barrier().ok());
  ASSERT_TRUE(wait_all(messages).ok());
  EXPECT_EQ(got_one, std::byte{1});
  EXPECT_EQ(got_two, std::byte{2});
}

inline void ADuplicateHasItsOwnMessagesAndCollectives(Comm& comm) {
  const auto copy = comm.duplicate();
  ASSERT_TRUE(copy);
  MessagesOfTwoDoNotMeet(comm, *copy);
}

inline void ADuplicateMayBeUsedByAnotherThreadAtTheSameTime(Comm& comm) {
  if (!comm.thread_safe()) return;
  const auto copy = comm.duplicate();
  const auto sum = [](Comm& which, int turns) {
    std::vector<int> all(static_cast<std::size_t>(which.size()));
    int total = 0;
    for (int turn = 0; turn < turns; ++turn) {
      const int mine = which.rank() + turn;
      EXPECT_TRUE(which.allgather(&mine, sizeof mine, all.data()).ok());
      total += std::accumulate(all.begin(), all.end(), 0);
    }
    return total;
  };
  int other = 0;
  std::thread thread([&] { other = sum(*copy, 30); });
  const int own = sum(comm, 30);
  thread.join();
  EXPECT_EQ(own, other);
}

inline void AliveRanksAreAlive(Comm& comm) {
  for (int rank = 0; rank < comm.size(); ++rank) EXPECT_TRUE(comm.alive(rank));
  ASSERT_TRUE(comm.barrier().ok());
}

inline void AKeepAliveReachesAllRanks(Comm& comm) {
  for (int sender = 0; sender < comm.size(); ++sender) {
    const std::uint64_t before = comm.last_keep_alive();
    ASSERT_TRUE(comm.barrier().ok());
    if (comm.rank() == sender) comm.keep_alive(0);
    while (comm.last_keep_alive() == before) {
      ASSERT_TRUE(comm.check(0).ok());  // receives it on leaders
      std::this_thread::yield();
    }
    ASSERT_TRUE(comm.barrier({.interval_ns = 1'000'000}).ok());  // node 0 continues to forward
  }
}

struct Case {
  const char* name;
  void (*run)(Comm&);
};

inline void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

inline constexpr Case kCases[] = {
    {"TopologyNumbersNodesByTheirLowestRank", TopologyNumbersNodesByTheirLowestRank},
    {"AllgatherGivesEverybodyThePartsOfAll", AllgatherGivesEverybodyThePartsOfAll},
    {"BroadcastGivesEverybodyTheBytesOfTheRoot", BroadcastGivesEverybodyTheBytesOfTheRoot},
    {"NobodyLeavesABarrierBeforeAllHaveCome", NobodyLeavesABarrierBeforeAllHaveCome},
    {"SharedMemoryIsZeroAndCommonToTheNode", SharedMemoryIsZeroAndCommonToTheNode},
    {"MessagesOfOneTagKeepTheirOrderAndTagsDoNotMeet",
     MessagesOfOneTagKeepTheirOrderAndTagsDoNotMeet},
    {"ADuplicateHasItsOwnMessagesAndCollectives", ADuplicateHasItsOwnMessagesAndCollectives},
    {"ADuplicateMayBeUsedByAnotherThreadAtTheSameTime",
     ADuplicateMayBeUsedByAnotherThreadAtTheSameTime},
    {"AliveRanksAreAlive", AliveRanksAreAlive},
    {"AKeepAliveReachesAllRanks", AKeepAliveReachesAllRanks},
};

}  // namespace pario::comm::conformance
