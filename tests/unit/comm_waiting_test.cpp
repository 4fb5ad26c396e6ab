// Waits that end with an error.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "core/comm/comm.hpp"
#include "pauses.hpp"

namespace pario::comm {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

/// Returns a Patience whose third look ends the wait.
Patience impatient(int& looks) {
  return {.interval_ns = kMillisecond, .look = [&looks](std::uint64_t) -> base::Status {
            if (++looks < 3) return {};
            return base::Error{.number = ETIMEDOUT, .operation = "look"};
          }};
}

TEST(Waiting, ADoneWaitDoesNotLook) {
  int looks = 0;
  const base::FutexWord word{1};
  EXPECT_TRUE(wait_until(word, [] { return true; }, impatient(looks)).ok());
  EXPECT_EQ(looks, 0);
}

TEST(Waiting, AnErrorOfTheLookEndsTheWait) {
  int looks = 0;
  const base::FutexWord word{0};
  const auto status = wait_until(word, [] { return false; }, impatient(looks));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().number, ETIMEDOUT);
  EXPECT_EQ(looks, 3);
}

TEST(Waiting, ALongWaitMakesProgressBetweenLooks) {
  int looks = 0, probes = 0;
  Patience patience = impatient(looks);
  patience.progress = [&probes] { ++probes; };
  const base::FutexWord word{0};
  EXPECT_TRUE(wait_until(word, [&probes] { return probes > 0; }, patience).ok());
  EXPECT_EQ(probes, 1);
}

TEST(Waiting, AMessageThatNeverComesEndsWithTheErrorOfTheLook) {
  int looks = 0;
  const auto self = make_self();
  std::byte in{0}, out{9};
  std::vector<std::unique_ptr<Pending>> messages;
  messages.push_back(self->receive(0, 1, {&in, 1}));
  EXPECT_FALSE(wait_all(messages, impatient(looks)).ok());
  messages.push_back(self->send(0, 1, {&out, 1}));
  EXPECT_TRUE(wait_all(messages).ok());
  EXPECT_EQ(in, std::byte{9});
}

TEST(Waiting, ARankThatLosesPatienceEndsTheWaitOfItsNode) {
  const int nodes[] = {0, 0, 0};
  run_as_threads(nodes, [](const std::shared_ptr<Comm>& comm) {
    int looks = 0;
    if (comm->rank() == 2) {
      while (comm->alive(0) || comm->alive(1)) std::this_thread::yield();
      return;
    }
    const auto status = comm->rank() == 0 ? comm->barrier(impatient(looks)) : comm->barrier();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().number, ETIMEDOUT);
  });
}

TEST(Waiting, ARankThatHasEndedIsNoticedWithoutBeingAskedFor) {
  const int nodes[] = {0, 0};
  run_as_threads(nodes, [](const std::shared_ptr<Comm>& comm) {
    if (comm->rank() == 1) return;
    const auto status = comm->barrier({.interval_ns = kMillisecond});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().detail, "rank 1 (1 of the program) has died");
  });
}

/// All collective calls of a Comm, one by one.
base::Status make(Comm& comm, int call) {
  std::vector<int> all(static_cast<std::size_t>(comm.size()));
  if (call == 0) return comm.barrier();
  if (call == 1) return comm.broadcast(all.data(), sizeof(int), comm.size() - 1);
  if (call == 2) return comm.allgather(&call, sizeof call, all.data());
  if (call == 3)
    return comm.share(100) ? comm.barrier() : comm.failure();  // nodes share without each other
  return comm.duplicate() ? base::Status() : comm.failure();
}

TEST(Waiting, AFailedLeaderEndsTheWaitOfItsNode) {
  const int nodes[] = {0, 0, 1};
  run_as_threads(nodes, [](const std::shared_ptr<Comm>& comm) {
    if (comm->rank() == 2) {
      while (comm->alive(0) || comm->alive(1)) std::this_thread::yield();
      return;
    }
    int looks = 0;
    EXPECT_FALSE(comm->barrier(impatient(looks)).ok());
  });
}

TEST(Waiting, TheDeathOfAnyRankIsToldToAllNodes) {
  const int nodes[] = {0, 1, 0, 2, 1, 2};
  for (int dies = 0; dies < 6; ++dies) {
    for (int call = 0; call < 5; ++call) {
      run_as_threads(nodes, [dies, call](const std::shared_ptr<Comm>& comm) {
        EXPECT_TRUE(make(*comm, call).ok());
        if (comm->rank() == dies) return;
        base::Status status;
        while (status.ok()) status = make(*comm, call);
        EXPECT_EQ(status.error().number, ESRCH) << status.error().text();
        EXPECT_EQ(make(*comm, 0).error().detail, status.error().detail);
      });
    }
  }
}

TEST(Waiting, AFailureThatWasDeclaredIsThatOfAllNodes) {
  const int nodes[] = {0, 0, 1, 1};
  run_as_threads(nodes, [](const std::shared_ptr<Comm>& comm) {
    if (comm->rank() == 1)
      comm->fail({.number = ENOMEM, .operation = "share", .path = "/a", .detail = "none"});
    const base::Status status = comm->barrier();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().text(),
              (base::Error{.number = ENOMEM, .operation = "share", .path = "/a", .detail = "none"})
                  .text());
  });
}

TEST(Waiting, TheLossOfAWholeNodeIsNoticedByItsLeadersPatienceOnly) {
  const int nodes[] = {0, 0, 1};
  run_as_threads(nodes, [](const std::shared_ptr<Comm>& comm) {
    if (comm->rank() == 2) return;
    int looks = 0;
    const base::Status status = comm->barrier(impatient(looks));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().number, ETIMEDOUT);
  });
}

TEST(Waiting, PatienceOfAWatchdogBeginsAgainWithAKeepAlive) {
  const int nodes[] = {0, 0};
  constexpr std::uint64_t kWorks = 1000 * kMillisecond;
  std::atomic<std::uint64_t> waited_ns{0};
  Pauses pauses;
  const std::uint64_t begin = base::monotonic_ns();
  run_as_threads(nodes, [&](const std::shared_ptr<Comm>& comm) {
    using namespace std::chrono_literals;
    const std::string path = "/a";
    Watchdog watch(*comm, {.give_up = 200ms}, {path, "call", nullptr});
    if (comm->rank() == 1) {
      std::uint64_t last = begin;
      for (; last - begin < kWorks && !comm->has_failed(); pauses.note_step(last)) {
        comm->keep_alive(0);
        std::this_thread::sleep_for(5ms);
      }
      pauses.note_step(last);
      while (!comm->has_failed()) std::this_thread::sleep_for(5ms);
      return;
    }
    const auto status = comm->barrier(watch.patience());
    waited_ns = base::monotonic_ns() - begin;
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().number, ETIMEDOUT);
  });
  EXPECT_TRUE(waited_ns >= kWorks || pauses.longest_ns() > 100 * kMillisecond) << waited_ns;
}

TEST(Waiting, AnInterruptOfOneRankEndsTheWaitsOfAll) {
  const int nodes[] = {0, 0, 0};
  run_as_threads(nodes, [](const std::shared_ptr<Comm>& comm) {
    if (comm->rank() == 2) {  // the absent rank
      while (!comm->has_failed()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    WaitLimits limits;
    if (comm->rank() == 0)
      limits.interrupt = [] { return base::Status(base::Error{.number = EINTR}); };
    const std::string path = "/a";
    Watchdog watch(*comm, limits, {path, "call", nullptr});
    const auto status = comm->barrier(watch.patience());
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().number, EINTR);
  });
}

}  // namespace
}  // namespace pario::comm
