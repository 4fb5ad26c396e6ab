#include "core/trace/events.hpp"

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

#include "log_reader.hpp"
#include "tracing.hpp"

namespace pario::trace {
namespace {

using Events = Tracing;

TEST_F(Events, ComeBackAsTheyWereStored) {
  begin();
  Record* record = record_of("/a");
  std::mt19937_64 random(1);
  std::vector<Call> calls;
  for (int i = 0; i < 30000; ++i) {
    calls.push_back(read_call(random(), random() >> 8));
    count(record, calls.back());
  }
  finish(1, 0);
  const ReadLog log = read_only_log(directory);
  ASSERT_EQ(log.events.size(), calls.size());
  EXPECT_EQ(log.chunks, 4u);
  EXPECT_EQ(log.process.events, calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ASSERT_EQ(log.events[i].start, calls[i].start);
    ASSERT_EQ(log.events[i].duration, calls[i].end - calls[i].start);
    ASSERT_EQ(log.events[i].offset, calls[i].offset);
    ASSERT_EQ(log.events[i].length, static_cast<std::uint64_t>(calls[i].result));
    ASSERT_EQ(log.events[i].count, 1u);
  }
}

TEST_F(Events, CarryFlags) {
  begin();
  Record* record = record_of("/a");
  count(record, call(kReadId, 0, 10, -1));
  count(record, call(kReadId, 0, 10, 4));
  {
    const Guard mpi(Guard::Kind::mpi);
    count(record, read_call(0, 1));
    const Guard mpiio(Guard::Kind::mpiio);
    count(record, read_call(0, 1));
    count(record_of("/a", Layer::mpiio), read_call(0, 1));
  }
  Call collective = read_call(0, 1);
  collective.flags = kCollective;
  count(record, collective);
  finish(1, 0);
  std::vector<int> flags;
  for (const Event& event : read_only_log(directory).events) flags.push_back(event.flags);
  EXPECT_EQ(flags, (std::vector<int>{kFailed, kShort, kInMpi, kInMpiIo, 0, kCollective}));
  EXPECT_EQ(record->nested_reads, 1u);
}

TEST_F(Events, OfARunCarryItsCallsAndItsSpan) {
  begin();
  Call run = write_call(0, 1000);
  run.calls = 1000;
  run.end = run.start + process().ticks_per_second;
  count(record_of("/a"), run);
  finish(1, 0);
  const ReadLog log = read_only_log(directory);
  ASSERT_EQ(log.events.size(), 1u);
  EXPECT_EQ(log.events[0].count, 1000u);
  EXPECT_NEAR(log.events[0].span, 1e6, 1);
  EXPECT_EQ(log.calls.at(kWriteId), 1000u);
}

TEST_F(Events, OfCommunicationHaveNoRecord) {
  begin();
  count_call(call(kSendId, std::uint64_t{3} << 32 | 99, 0, 0), 1, 4096);
  finish(1, 0);
  const ReadLog log = read_only_log(directory);
  ASSERT_EQ(log.events.size(), 1u);
  EXPECT_EQ(log.events[0].file, 1u);
  EXPECT_EQ(log.events[0].offset, std::uint64_t{3} << 32 | 99);
  EXPECT_EQ(log.events[0].length, 4096u);
  EXPECT_EQ(log.calls.at(kSendId), 1u);
}

TEST_F(Events, AreOffAtLimitZero) {
  begin({.events_limit = 0});
  Record* record = record_of("/a");
  for (int i = 0; i < 10000; ++i) count(record, read_call(0, 1));
  finish(1, 0);
  const ReadLog log = read_only_log(directory);
  EXPECT_TRUE(log.events.empty());
  EXPECT_EQ(log.record("/a").reads, 10000u);
  EXPECT_EQ(log.calls.at(kReadId), 10000u);
}

TEST_F(Events, AreCoarsenedBeforeTheLimitAndEveryCallStaysAccountedFor) {
  constexpr std::uint64_t kLimit = 1 << 20, kCalls = 300000;
  begin({.events_limit = kLimit});
  Record* record = record_of("/a");
  std::mt19937_64 random(1);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    const Call made = read_call(random(), random() % 1000);
    bytes += static_cast<std::uint64_t>(made.result);
    count(record, made);
  }
  finish(1, 0);
  const ReadLog log = read_only_log(directory);
  std::uint64_t calls = 0, event_bytes = 0;
  for (const Event& event : log.events) {
    calls += event.count;
    event_bytes += event.length;
    EXPECT_EQ(event.span != 0, event.count > 1 && event.span != 0);
  }
  EXPECT_EQ(calls, kCalls);
  EXPECT_EQ(event_bytes, bytes);
  EXPECT_EQ(log.process.events_merged, kCalls - log.events.size());
  EXPECT_LE(log.process.event_bytes, kLimit);
  EXPECT_EQ(log.process.events_lost, 0u);
}

TEST_F(Events, ThatCannotBeMergedStopAtTheLimitAndAreCounted) {
  constexpr std::uint64_t kLimit = 64 << 10, kCalls = 100000;
  begin({.events_limit = kLimit});
  std::vector<Record*> records;
  for (int i = 0; i < 50; ++i) records.push_back(record_of("/" + std::to_string(i)));
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i < kCalls; ++i)
    count(records[i % records.size()], read_call(random(), random() % 1000));
  finish(1, 0);
  const ReadLog log = read_only_log(directory);
  std::uint64_t calls = 0;
  for (const Event& event : log.events) calls += event.count;
  EXPECT_EQ(calls + log.process.events_lost, kCalls);
  EXPECT_GT(log.process.events_lost, 0u);
  EXPECT_LE(log.process.event_bytes, kLimit + (400u << 10)) << "at most the last chunk more";
}

TEST_F(Events, OfThreadsThatCameAndWentAreAllThere) {
  begin();
  Record* record = record_of("/a");
  for (int t = 0; t < 20; ++t)
    std::thread([&] {
      for (int i = 0; i < 1000; ++i) count(record, read_call(0, 1));
    }).join();
  finish(1, 0);
  const ReadLog log = read_only_log(directory);
  EXPECT_EQ(log.events.size(), 20000u);
  EXPECT_EQ(log.threads, 1u) << "each was given the slot of the one before";
  EXPECT_EQ(log.process.threads, 20u);
}

TEST_F(Events, OfAThreadThatStillRunsLieInItsTail) {
  begin();
  Record* record = record_of("/a");
  std::atomic<int> stage = 0;
  std::thread other([&] {
    count(record, read_call(0, 1));
    stage = 1;
    while (stage != 2) std::this_thread::yield();
  });
  while (stage != 1) std::this_thread::yield();
  finish(1, 0);
  EXPECT_EQ(read_only_log(directory).tail_events, 1u);
  stage = 2;
  other.join();
}

TEST(MergeWindow, GrowsTenfoldEachTimeHalfOfTheRestIsUsed) {
  constexpr std::uint64_t kLimit = 1024;
  EXPECT_EQ(merge_window_us(0, kLimit), 0u);
  EXPECT_EQ(merge_window_us(511, kLimit), 0u);
  EXPECT_EQ(merge_window_us(512, kLimit), 10'000u);
  EXPECT_EQ(merge_window_us(767, kLimit), 10'000u);
  EXPECT_EQ(merge_window_us(768, kLimit), 100'000u);
  EXPECT_EQ(merge_window_us(896, kLimit), 1'000'000u);
  EXPECT_EQ(merge_window_us(1024, kLimit), ~std::uint64_t{0});
}

TEST(Merge, JoinsLikeEventsWithinTheWindow) {
  Event tail[] = {{1000, 10, 0, 5, 1, 1, 0, 2, 0, 0}};
  const Event like{1500, 20, 5, 7, 1, 1, 0, 2, 0, 0};
  EXPECT_FALSE(merge(tail, 1, like, 499, 1'000'000));
  ASSERT_TRUE(merge(tail, 1, like, 500, 1'000'000));
  EXPECT_EQ(tail[0].count, 2u);
  EXPECT_EQ(tail[0].duration, 30u);
  EXPECT_EQ(tail[0].length, 12u);
  EXPECT_EQ(tail[0].offset, 0u);
  EXPECT_EQ(tail[0].span, 520u) << "microseconds from 1000 to 1520";
}

TEST(Merge, KeepsUnlikeEventsApart) {
  Event tail[] = {{1000, 10, 0, 5, 1, 1, 0, 2, 0, 0}};
  EXPECT_FALSE(merge(tail, 1, {1001, 1, 0, 5, 2, 1, 0, 2, 0, 0}, 500, 1'000'000)) << "another file";
  EXPECT_FALSE(merge(tail, 1, {1001, 1, 0, 5, 1, 1, 0, 3, 0, 0}, 500, 1'000'000))
      << "another function";
  EXPECT_FALSE(merge(tail, 1, {1001, 1, 0, 5, 1, 1, 0, 2, 0, kFailed}, 500, 1'000'000))
      << "it failed";
  EXPECT_FALSE(merge(tail, 1, {900, 1, 0, 5, 1, 1, 0, 2, 0, 0}, 500, 1'000'000))
      << "it began earlier";
}

TEST(Guards, LetOnlyTheOutermostCallCount) {
  const Guard outer;
  EXPECT_TRUE(outer.outermost());
  const Guard inner;
  EXPECT_FALSE(inner.outermost());
  const Guard mpi(Guard::Kind::mpi);
  EXPECT_FALSE(mpi.outermost());
}

TEST(Guards, OfMpiLetCallsThroughButNoMpi) {
  const Guard mpi(Guard::Kind::mpi);
  EXPECT_TRUE(mpi.outermost());
  const Guard inner_mpi(Guard::Kind::mpiio);
  EXPECT_FALSE(inner_mpi.outermost());
  const Guard call;
  EXPECT_TRUE(call.outermost());
}

}  // namespace
}  // namespace pario::trace
