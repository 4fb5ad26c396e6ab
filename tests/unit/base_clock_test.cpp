#include <gtest/gtest.h>
#include <sys/time.h>

#include <csignal>
#include <thread>
#include <vector>

#include "core/base/base.hpp"
#include "core/base/sleep.hpp"

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

TEST(Sleep, LastsAsLongAsAsked) {
  const std::uint64_t begin = monotonic_ns();
  sleep_ns(20'000'000);
  const std::uint64_t middle = monotonic_ns();
  EXPECT_GE(middle - begin, 20'000'000);
  sleep_until_ns(middle + 20'000'000);
  EXPECT_GE(monotonic_ns() - middle, 20'000'000);
}

TEST(Sleep, UntilAMomentContinuesAfterSignals) {
  const auto ignore = [](int) {};
  struct sigaction action = {}, before;
  action.sa_handler = ignore;
  sigaction(SIGALRM, &action, &before);
  const itimerval often{{0, 5'000}, {0, 5'000}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  const std::uint64_t moment = monotonic_ns() + 50'000'000;
  sleep_until_ns(moment);
  EXPECT_GE(monotonic_ns(), moment);
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
}

TEST(Sleep, UntilAPastMomentReturnsAtOnce) { sleep_until_ns(1); }

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
