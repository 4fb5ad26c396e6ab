#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/base.hpp"

namespace pario::base {
namespace {

TEST(Clock, TicksGoForwardAtTheAnnouncedRate) {
  choose_clock();
  const std::uint64_t rate = tick_rate(anchor());
  const std::uint64_t start = ticks(), start_ns = monotonic_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::uint64_t passed = ticks() - start, passed_ns = monotonic_ns() - start_ns;
  EXPECT_NEAR(static_cast<double>(passed) / static_cast<double>(rate), static_cast<double>(passed_ns) / 1e9, 0.02);
}

TEST(SpinLock, LetsOneThreadInAtATime) {
  std::uint64_t word = 0;
  int counter = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10000; ++i) {
        const SpinLock lock(word);
        ++counter;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 40000);
}

TEST(SystemCall, ReturnsTheErrorAndLeavesErrnoAlone) {
  errno = 77;
  EXPECT_EQ(system_call(SYS_close, -1), -EBADF);
  EXPECT_EQ(errno, 77);
}

}  // namespace
}  // namespace pario::base
