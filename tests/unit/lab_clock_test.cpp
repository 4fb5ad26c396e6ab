// The time that targets need, with a clock set by the test.
#include <gtest/gtest.h>

#include "instruments/lab/clock.hpp"
#include "instruments/lab/targets.hpp"

namespace pario::lab {
namespace {

constexpr Duration ms = 1'000'000;
constexpr double kMegabyteInAMillisecond = 1e9;  // bytes per second

TEST(Queue, TakesOneAfterTheOther) {
  Queue queue(kMegabyteInAMillisecond);
  EXPECT_EQ(queue.book(100 * ms, 1'000'000, 2 * ms), 103 * ms);
  EXPECT_EQ(queue.book(100 * ms, 1'000'000, 2 * ms), 106 * ms);
  EXPECT_EQ(queue.book(500 * ms, 0, 2 * ms), 502 * ms);
  EXPECT_EQ(queue.busy(), 8 * ms);
}

TEST(Queue, WithoutARateAddsOnlyOverheads) {
  Queue queue(0);
  EXPECT_EQ(queue.book(5, 1 << 30, 2 * ms), 5 + 2 * ms);
}

TEST(Window, DelaysWritersWhenItIsFull) {
  Window window(2);
  EXPECT_EQ(window.admit(10), 0U);
  EXPECT_EQ(window.admit(20), 0U);
  EXPECT_EQ(window.admit(30), 10U);
  EXPECT_EQ(window.admit(40), 20U);
}

TEST(Window, OfSizeZeroDelaysEachWrite) {
  Window window(0);
  EXPECT_EQ(window.admit(10), 10U);
  EXPECT_EQ(window.admit(20), 20U);
}

TEST(ObjectLock, IsTakenFromTheLastWriter) {
  ObjectLock lock;
  EXPECT_FALSE(lock.acquire(1, true));
  EXPECT_FALSE(lock.acquire(1, true));
  EXPECT_TRUE(lock.acquire(2, true));
  EXPECT_TRUE(lock.acquire(1, true));
}

TEST(ObjectLock, IsSharedByReaders) {
  ObjectLock lock;
  EXPECT_FALSE(lock.acquire(1, true));
  EXPECT_FALSE(lock.acquire(1, false));
  EXPECT_FALSE(lock.acquire(1, true)) << "nobody else has read";
  EXPECT_TRUE(lock.acquire(2, false)) << "from the writer";
  EXPECT_FALSE(lock.acquire(3, false));
  EXPECT_TRUE(lock.acquire(2, true)) << "from the other reader";
  EXPECT_FALSE(lock.acquire(2, true));
}

TEST(Continuation, IsTheRestThatTheKernelCutsOff) {
  Continuation before;
  constexpr std::uint64_t kCut = (1 << 20) - 16;
  EXPECT_FALSE(before.continues(1, 0, kCut));
  EXPECT_FALSE(before.continues(1, 8 << 20, kCut)) << "another process of the host";
  EXPECT_TRUE(before.continues(1, kCut, 16));
  EXPECT_FALSE(before.continues(1, kCut + 16, 16)) << "small writes in a row are requests each";
  EXPECT_FALSE(before.continues(1, 0, kCut));
  EXPECT_FALSE(before.continues(2, kCut, 16)) << "of another client";
}

constexpr Speed kSpeed = {.rate = kMegabyteInAMillisecond,
                          .link = 0,
                          .latency = 1 * ms,
                          .lock_handover = 5 * ms,
                          .in_flight = 1};

Booked book(Targets& targets, Kind kind, std::vector<Request> requests, Moment now,
            Client client = 1) {
  return targets.book(client, kind, requests, now);
}

TEST(Targets, WorkSideBySide) {
  Targets targets(2, kSpeed);
  const Booked both = book(targets, Kind::read, {{0, 1'000'000}, {1, 3'000'000}}, 100 * ms);
  EXPECT_EQ(both.done, 104 * ms);
  EXPECT_EQ(book(targets, Kind::read, {{0, 0}}, 100 * ms).done, 103 * ms);
}

TEST(Targets, DelayReadsAndWritesBeyondTheWindow) {
  Targets targets(1, kSpeed);
  EXPECT_EQ(book(targets, Kind::read, {{0, 0}}, 10 * ms).resume, 11 * ms);
  EXPECT_EQ(book(targets, Kind::write, {{0, 0}}, 20 * ms).resume, 20 * ms);
  EXPECT_EQ(book(targets, Kind::write, {{0, 0}}, 20 * ms).resume, 21 * ms);
  EXPECT_EQ(book(targets, Kind::write, {{0, 0}}, 20 * ms, 2).resume, 20 * ms)
      << "clients have rooms of their own";
}

TEST(Targets, ServeARestBeforeTheQueue) {
  Targets targets(1, kSpeed);
  book(targets, Kind::read, {{0, 1'000'000}}, 0, 1);
  book(targets, Kind::read, {{0, 1'000'000}}, 0, 2);
  EXPECT_EQ(book(targets, Kind::read, {{0, 16, false, true}}, 2 * ms, 1).resume, 2 * ms);
}

TEST(Targets, WaitForTheLinkOfAClient) {
  Speed speed = kSpeed;
  speed.link = kMegabyteInAMillisecond / 10;
  Targets targets(2, speed);
  EXPECT_EQ(book(targets, Kind::read, {{0, 1'000'000}, {1, 1'000'000}}, 0).done, 20 * ms);
  EXPECT_EQ(book(targets, Kind::read, {{0, 1'000'000}}, 0, 2).done, 10 * ms);
}

TEST(Targets, CountRequests) {
  Targets targets(2, kSpeed);
  book(targets, Kind::write, {{0, 100}, {1, 50, true}}, 0);
  book(targets, Kind::write, {{0, 10, false, true}}, 0);
  book(targets, Kind::other, {{1, 0}}, 0);
  const auto counts = targets.counts();
  EXPECT_EQ(counts[0].writes, 1U) << "a rest is no request";
  EXPECT_EQ(counts[0].bytes_written, 110U);
  EXPECT_EQ(counts[1].hand_overs, 1U);
  EXPECT_EQ(counts[1].others, 1U);
  EXPECT_EQ(counts[1].busy, 7 * ms + 50);
  targets.reset_counts();
  EXPECT_EQ(targets.counts()[1].busy + targets.counts()[0].bytes_written, 0U);
}

TEST(Targets, AreTakenInTurn) {
  Targets targets(4, kSpeed);
  EXPECT_EQ(targets.next_start(3), 0U);
  EXPECT_EQ(targets.next_start(3), 3U);
  EXPECT_EQ(targets.next_start(1), 2U);
}

}  // namespace
}  // namespace pario::lab
