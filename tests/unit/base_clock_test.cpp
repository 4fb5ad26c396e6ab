#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "core/base/base.hpp"

namespace pario::base {
namespace {

TEST(Clock, TicksGoForwardAtTheAnnouncedRate) {
  choose_clock();
  const std::uint64_t rate = tick_rate(anchor());
  // Each reading of the ticks lies between two readings of the clock: the thread may be preempted.
  const std::uint64_t before_start = monotonic_ns(), start = ticks(), after_start = monotonic_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::uint64_t before_end = monotonic_ns(), end = ticks(), after_end = monotonic_ns();
  const double seconds = static_cast<double>(end - start) / static_cast<double>(rate);
  EXPECT_GT(seconds, static_cast<double>(before_end - after_start) / 1e9 - 0.02);
  EXPECT_LT(seconds, static_cast<double>(after_end - before_start) / 1e9 + 0.02);
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
