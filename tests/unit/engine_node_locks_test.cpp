// Locks on ranges between the ranks and threads of a node.
#include "parallel/engine/node_locks.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <thread>
#include <vector>

namespace pario::engine {
namespace {

/// Locks in memory that forked children share.
class EngineNodeLocks : public ::testing::Test {
 protected:
  EngineNodeLocks()
      : memory_(static_cast<std::byte*>(::mmap(nullptr, NodeLocks::memory_size(),
                                               PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                                               -1, 0))) {
    NodeLocks::initialise(memory_);
    locks_.emplace(memory_);
  }
  ~EngineNodeLocks() override { ::munmap(memory_, NodeLocks::memory_size()); }

  std::byte* const memory_;
  std::optional<NodeLocks> locks_;
};

TEST_F(EngineNodeLocks, ExcludeThreadsWithCommonBytes) {
  constexpr int kThreads = 4, kTimes = 5000;
  int count = 0;  // protected by byte 10'000 of all ranges
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      const std::uint64_t begin = 10'000 - static_cast<std::uint64_t>(i) * 3'000;
      for (int time = 0; time < kTimes; ++time) {
        const NodeLocks::Hold hold(*locks_, {begin, 10'001 + static_cast<std::uint64_t>(time)});
        count = count + 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kTimes);
}

TEST_F(EngineNodeLocks, DoNotExcludeOtherPages) {
  const NodeLocks::Hold hold(*locks_, {0, 4096});
  std::thread([&] {
    const NodeLocks::Hold behind(*locks_, {4096, 64 * 4096});  // never returns if it is excluded
  }).join();
}

TEST_F(EngineNodeLocks, HoldRangesOfAnyLength) {
  for (const base::Extent range :
       {base::Extent{5, 5}, {0, 1}, {63 * 4096, 66 * 4096}, {1, 64 * 4096}, {0, 1ull << 40}}) {
    const NodeLocks::Hold hold(*locks_, range);
  }
  const NodeLocks::Hold all(*locks_, {0, 1ull << 40});  // all are free again
}

TEST_F(EngineNodeLocks, OfADeadRankAreFree) {
  const pid_t child = ::fork();
  if (child == 0) {
    const NodeLocks::Hold hold(*locks_, {0, 1 << 20});
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  for (int times = 0; times < 2; ++times) const NodeLocks::Hold hold(*locks_, {0, 1 << 20});
}

}  // namespace
}  // namespace pario::engine
