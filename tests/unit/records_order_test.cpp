// Orders and schedules of loading: pure functions.
#include "data/records/order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace pario::records {
namespace {

std::vector<std::uint64_t> all_of(const OrderRequest& request) {
  const Order order(request);
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < request.count; ++i) out.push_back(order.at(i));
  return out;
}

/// Models tf.data's `interleave`, one record after the other.
std::vector<std::uint64_t> interleave(const std::vector<std::uint64_t>& counts, std::size_t cycle,
                                      std::uint64_t block) {
  struct Open {
    std::uint64_t next, end;
  };
  std::vector<std::optional<Open>> open(std::min(cycle, counts.size()));
  std::vector<std::uint64_t> out;
  std::size_t file = 0, seat = 0;
  std::uint64_t given = 0, begin = 0, count = 0;
  for (const std::uint64_t records : counts) count += records;
  const auto next_seat = [&] { given = 0, seat = (seat + 1) % open.size(); };
  while (out.size() < count) {
    if (open[seat] && open[seat]->next < open[seat]->end) {
      out.push_back(open[seat]->next++);
      if (++given == block) next_seat();
    } else if (open[seat]) {
      open[seat].reset();
      next_seat();
    } else if (file < counts.size()) {
      open[seat] = {begin, begin + counts[file]};
      begin += counts[file++];
    } else {
      next_seat();
    }
  }
  return out;
}

void expect_each_once(const std::vector<std::uint64_t>& records) {
  EXPECT_EQ(std::set<std::uint64_t>(records.begin(), records.end()).size(), records.size());
  for (const std::uint64_t record : records) EXPECT_LT(record, records.size());
}

TEST(Permutation, IsABijectionWithAndWithoutATable) {
  for (const std::uint64_t count : {1U, 2U, 3U, 5U, 64U, 1000U, 1025U})
    for (const bool table : {true, false}) {
      const Permutation permutation(count, 7, 3, table);
      std::vector<std::uint64_t> out;
      for (std::uint64_t i = 0; i < count; ++i) out.push_back(permutation.at(i));
      expect_each_once(out);
    }
}

TEST(Permutation, OfManyIsNoTableAndInItsRange) {
  const std::uint64_t count = 3'000'000'000;
  const Permutation permutation(count, 1, 0, true);
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) seen.insert(permutation.at(i * 2'999'999));
  EXPECT_EQ(seen.size(), 1000);
  EXPECT_LT(*seen.rbegin(), count);
}

TEST(Order, AllPermutationsOfFiveAreEquallyLikely) {
  std::map<std::vector<std::uint64_t>, int> seen;
  for (std::uint64_t seed = 0; seed < 60'000; ++seed)
    ++seen[all_of({.ordering = Ordering::shuffled, .count = 5, .seed = seed})];
  double chi_square = 0;
  for (const auto& [permutation, times] : seen)
    chi_square += (times - 500.0) * (times - 500.0) / 500.0;
  EXPECT_EQ(seen.size(), 120);
  EXPECT_LT(chi_square, 178);  // of 119 degrees of freedom: passed by one in 2,600
}

TEST(Order, WithoutATableRecordsComeEverywhereEquallyOften) {
  constexpr std::uint64_t kCount = 16, kSeeds = 20'000;
  std::vector<double> seen(kCount * kCount);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    for (std::uint64_t i = 0; i < kCount; ++i)
      seen[i * kCount + Permutation(kCount, seed, 0, false).at(i)] += 1;
  double chi_square = 0;
  const double expected = static_cast<double>(kSeeds) / kCount;
  for (const double times : seen) chi_square += (times - expected) * (times - expected) / expected;
  EXPECT_LT(chi_square, 300);  // of 225 degrees of freedom: passed by one in 1,600
}

TEST(Order, EpochsAndSeedsDiffer) {
  const auto first = all_of({.ordering = Ordering::shuffled, .count = 100, .seed = 1});
  EXPECT_EQ(first, all_of({.ordering = Ordering::shuffled, .count = 100, .seed = 1}));
  EXPECT_NE(first, all_of({.ordering = Ordering::shuffled, .count = 100, .seed = 2}));
  EXPECT_NE(first, all_of({.ordering = Ordering::shuffled, .count = 100, .seed = 1, .epoch = 1}));
}

TEST(Order, FilesTakeTurns) {
  EXPECT_EQ(
      all_of({.ordering = Ordering::interleaved,
              .count = 18,
              .block = 2,
              .group = 2,
              .files = {3, 6, 9}}),
      (std::vector<std::uint64_t>{0, 1, 3, 4, 2, 5, 6, 9, 10, 7, 8, 11, 12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(all_of({.ordering = Ordering::interleaved,
                    .count = 4,
                    .block = 1,
                    .group = 9,
                    .files = {2, 0, 2}}),
            (std::vector<std::uint64_t>{0, 2, 1, 3}));
}

TEST(Order, FilesTakeTurnsAsInTfData) {
  const std::vector<std::vector<std::uint64_t>> all = {
      {100}, {0, 0, 5}, {7, 7, 7, 7, 7}, {64, 64, 64}, {1, 50, 3, 0, 20, 11, 2}, {5, 0, 0}};
  for (const auto& files : all)
    for (const std::size_t cycle : {1, 2, 3, 16})
      for (const std::uint64_t block : {1, 2, 7, 100}) {
        const auto expected = interleave(files, cycle, block);
        EXPECT_EQ(all_of({.ordering = Ordering::interleaved,
                          .count = expected.size(),
                          .block = block,
                          .group = cycle,
                          .files = files}),
                  expected);
      }
}

TEST(Order, BlocksStayTogetherWithinTheirGroup) {
  for (const std::uint64_t count : {1U, 10U, 100U, 103U, 96U}) {
    const OrderRequest request{
        .ordering = Ordering::blocks, .count = count, .seed = 5, .block = 8, .group = 3};
    const auto records = all_of(request);
    expect_each_once(records);
    std::set<std::uint64_t> blocks;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, 16); ++i)
      blocks.insert(records[i] / 8);
    // three blocks of a group, and one of the next group if one of them is short
    EXPECT_LE(blocks.size(), 4) << count;
  }
}

TEST(Order, BlocksMayDifferInLengthAndTakeTurnsWithAllTheirRecords) {
  const std::vector<std::uint64_t> begins = {0, 5, 5, 6, 26, 33, 33};  // two are empty
  const OrderRequest request{.ordering = Ordering::blocks,
                             .count = 33,
                             .seed = 5,
                             .epoch = 2,
                             .group = 2,
                             .begins = begins};
  expect_each_once(all_of(request));
  const Order order(request);
  std::set<std::uint64_t> blocks;
  for (std::uint64_t position = 0; position < 33;) {
    const BlockOrder::Turn turn = order.turn_of(position);
    EXPECT_EQ(turn.positions.begin, position);
    std::set<std::uint64_t> expected, found;
    for (const std::uint64_t block : turn.blocks)
      for (std::uint64_t record = begins[block]; record < begins[block + 1]; ++record)
        expected.insert(record);
    for (; position < turn.positions.end; ++position) found.insert(order.at(position));
    EXPECT_EQ(found, expected);
    for (const std::uint64_t block : turn.blocks) EXPECT_TRUE(blocks.insert(block).second) << block;
  }
}

TEST(Order, BlocksOfOneLengthComeAsIfTheyWereGiven) {
  OrderRequest request{
      .ordering = Ordering::blocks, .count = 103, .seed = 5, .block = 8, .group = 3};
  const auto expected = all_of(request);
  for (std::uint64_t begin = 0; begin < 103; begin += 8) request.begins.push_back(begin);
  request.begins.push_back(103);
  EXPECT_EQ(all_of(request), expected);
}

std::vector<std::uint64_t> positions(const Schedule& schedule) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t s = 0; s < schedule.steps(); ++s)
    for (std::uint64_t p = schedule.step(s).first; p < schedule.step(s).last; ++p) out.push_back(p);
  return out;
}

TEST(Schedule, EveryPositionIsOneRanks) {
  for (const std::uint64_t ranks : {1U, 2U, 3U, 7U}) {
    std::vector<std::uint64_t> all;
    for (std::uint64_t rank = 0; rank < ranks; ++rank)
      for (const std::uint64_t p :
           positions({.count = 101, .batch = 4, .ranks = ranks, .rank = rank}))
        all.push_back(p);
    EXPECT_EQ(all.size(), 101);
    expect_each_once(all);
  }
}

TEST(Schedule, GoesOnWithOtherRanksWhereItEnded) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t rank = 0; rank < 3; ++rank) {
    const Schedule schedule{.count = 100, .batch = 4, .ranks = 3, .rank = rank};
    for (std::uint64_t p = schedule.step(0).first; p < schedule.step(0).last; ++p) all.push_back(p);
  }
  const std::uint64_t done = Schedule{.count = 100, .batch = 4, .ranks = 3}.step(0).end;
  EXPECT_EQ(done, 12);
  for (std::uint64_t rank = 0; rank < 5; ++rank)
    for (const std::uint64_t p :
         positions({.count = 100, .begin = done, .batch = 2, .ranks = 5, .rank = rank}))
      all.push_back(p);
  EXPECT_EQ(all.size(), 100);
  expect_each_once(all);
}

TEST(Schedule, OnlyFullBatchesAreTheSameNumberForAll) {
  for (std::uint64_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(positions({.count = 100,
                         .batch = 8,
                         .ranks = 3,
                         .rank = rank,
                         .remainder = Remainder::full_batches})
                  .size(),
              32);
}

TEST(Schedule, PaddingGivesEqualNumbersAndLeavesNothingOut) {
  for (std::uint64_t count = 1; count < 60; ++count)
    for (const std::uint64_t ranks : {1U, 2U, 3U, 8U}) {
      std::set<std::size_t> lengths;
      std::set<std::uint64_t> found;
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        const auto mine = positions({.count = count,
                                     .batch = 3,
                                     .ranks = ranks,
                                     .rank = rank,
                                     .remainder = Remainder::pad});
        EXPECT_EQ(std::set<std::uint64_t>(mine.begin(), mine.end()).size(), mine.size());
        lengths.insert(mine.size());
        found.insert(mine.begin(), mine.end());
      }
      EXPECT_EQ(lengths, std::set<std::size_t>{(count + ranks - 1) / ranks})
          << count << " records, " << ranks << " ranks";
      EXPECT_EQ(found.size(), count);
      EXPECT_EQ(*found.rbegin(), count - 1);
    }
}

TEST(Schedule, DroppingGivesEqualNumbersAndLeavesOutFewerRecordsThanRanks) {
  for (std::uint64_t count = 1; count < 60; ++count)
    for (const std::uint64_t ranks : {1U, 2U, 3U, 8U}) {
      std::vector<std::uint64_t> found;
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        const auto mine = positions({.count = count,
                                     .batch = 3,
                                     .ranks = ranks,
                                     .rank = rank,
                                     .remainder = Remainder::drop});
        EXPECT_EQ(mine.size(), count / ranks);
        found.insert(found.end(), mine.begin(), mine.end());
      }
      expect_each_once(found);
    }
}

TEST(Schedule, PartsOfHugeStepsDoNotOverflow) {
  constexpr std::uint64_t kCount = std::uint64_t{1} << 40, kRanks = (std::uint64_t{1} << 31) - 1;
  for (const Remainder remainder : {Remainder::exact, Remainder::pad, Remainder::drop}) {
    const Schedule schedule{.count = kCount,
                            .batch = kRanks,
                            .ranks = kRanks,
                            .rank = kRanks - 1,
                            .remainder = remainder};
    const Schedule::Step step = schedule.step(0);
    EXPECT_EQ(step.last, remainder == Remainder::drop ? kCount - kCount % kRanks : kCount);
    EXPECT_LE(step.last - step.first, kCount / kRanks + 1);
  }
}

TEST(Schedule, WorkersShareTheStepsOfTheirRank) {
  const Schedule whole{.count = 103, .batch = 4, .ranks = 2, .rank = 1};
  std::vector<std::uint64_t> all;
  for (std::uint64_t worker = 0; worker < 3; ++worker) {
    Schedule part = whole;
    part.stride = 3;
    part.offset = worker;
    for (const std::uint64_t p : positions(part)) all.push_back(p);
  }
  std::ranges::sort(all);
  EXPECT_EQ(all, positions(whole));
}

}  // namespace
}  // namespace pario::records
