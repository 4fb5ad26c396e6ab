#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "checkpoint/checkpoint.hpp"

using namespace pario;

namespace {

constexpr std::uint64_t kLong = 20'000'000'000;

TEST(CheckpointMeeting, WhatEachHasWrittenAllSeeAfterIt) {
  constexpr std::uint32_t kRanks = 4;
  constexpr std::uint32_t kRounds = 2000;
  base::FutexWord come{0xffff'fff0};  // counts go round on the way
  std::array<std::uint32_t, kRanks> written = {};
  std::array<std::uint32_t, kRanks> wrong = {};
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&, rank] {
      for (std::uint32_t round = 1; round <= kRounds; ++round) {
        written[rank] = round;
        for (const auto meeting : {2 * round - 1, 2 * round}) {  // before others write, and after
          checkpoint::arrive(come, 0xffff'fff0 + meeting * kRanks);
          if (!checkpoint::await(come, 0xffff'fff0 + meeting * kRanks, kLong)) ++wrong[rank];
          if (meeting % 2 == 1)
            for (const auto other : written) wrong[rank] += other != round;
        }
      }
    });
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(wrong, (std::array<std::uint32_t, kRanks>{}));
}

TEST(CheckpointMeeting, ThoseWhoDoNotComeAreNotWaitedForForever) {
  base::FutexWord come{0};
  checkpoint::arrive(come, 2);
  EXPECT_FALSE(checkpoint::await(come, 2, 1'000'000));
  checkpoint::arrive(come, 2);
  EXPECT_TRUE(checkpoint::await(come, 2, 0));
}

}  // namespace
