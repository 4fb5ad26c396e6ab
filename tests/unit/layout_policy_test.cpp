// The advice of the table, case by case.
#include <gtest/gtest.h>

#include <sstream>

#include "core/layout/layout.hpp"

namespace pario::layout {
namespace {

constexpr std::uint64_t MiB = 1 << 20, GiB = 1 << 30, GB = 1'000'000'000;

std::uint32_t stripes(const Expected& expected) {
  return choose_stripes(expected).striping.targets;
}

TEST(StripePolicy, SmallFilesHaveOneStripe) {
  EXPECT_EQ(choose_stripes({.size = 100 * 1024}).striping, (Striping{1 * MiB, 1, -1}));
  EXPECT_EQ(stripes({.size = 1 * GiB - 1, .writers = 1, .ranks = 1000, .targets = 100}), 1U);
  EXPECT_EQ(stripes({.size = 32 * MiB - 1, .writers = 1000, .ranks = 1000, .targets = 100}), 1U);
}

TEST(StripePolicy, LargeSharedFilesHaveATargetPerRank) {
  EXPECT_EQ(stripes({.size = 40 * GB, .writers = 16, .ranks = 16, .targets = 100}), 16U);
  EXPECT_EQ(stripes({.size = 40 * GB, .writers = 16, .ranks = 64, .targets = 100}), 64U);
  EXPECT_EQ(stripes({.size = 40 * GB, .writers = 16, .ranks = 16, .targets = 8}), 8U);
}

TEST(StripePolicy, FlashCheckpointsHaveTheSmallerOfRanksAndEighty) {
  for (const std::uint32_t ranks : {16U, 64U, 80U, 81U, 7680U})
    for (const std::uint64_t size : {189 * GB, 250 * GB})
      EXPECT_EQ(stripes({.size = size, .writers = ranks, .ranks = ranks}), std::min(ranks, 80U))
          << ranks;
}

TEST(StripePolicy, FlashCheckpointsOfOneProcessHaveTen) {
  EXPECT_EQ(stripes({.size = 189 * GB, .writers = 1, .ranks = 7680, .targets = 300}), 10U);
}

TEST(StripePolicy, WrfHistoryOfFourHundredGigabytesHasAllTargetsOfTheSystem) {
  EXPECT_EQ(stripes({.size = 411 * GB, .writers = 1216, .ranks = 1216, .targets = 144}), 144U);
  EXPECT_EQ(stripes({.size = 411 * GB, .writers = 1216, .ranks = 1216, .targets = 1000}), 160U);
}

TEST(StripePolicy, FilesOfMoreThanAHundredGigabytesAreAlwaysStriped) {
  for (const std::uint32_t writers : {1U, 2U, 1000U})
    for (const std::uint32_t files : {1U, 1000U})
      EXPECT_GE(stripes({.size = 100 * GB, .writers = writers, .targets = 100, .files = files}), 4U)
          << writers << " " << files;
}

TEST(StripePolicy, NeverAsksForMoreTargetsThanThereAre) {
  EXPECT_EQ(stripes({.size = 500 * GB, .writers = 1, .targets = 2}), 2U);
  EXPECT_EQ(stripes({.size = 500 * GB, .writers = 64, .targets = 3}), 3U);
}

TEST(StripePolicy, ATargetHoldsEnoughToBeWorthIt) {
  EXPECT_EQ(stripes({.size = 32 * MiB, .writers = 1000, .ranks = 1000}), 8U);
  EXPECT_EQ(stripes({.size = 256 * MiB, .writers = 1000, .ranks = 1000}), 64U);
}

TEST(StripePolicy, FilesAtTheSameTimeShareTheTargets) {
  EXPECT_EQ(stripes({.size = 4 * GiB, .writers = 1, .targets = 100, .files = 1}), 4U);
  EXPECT_EQ(stripes({.size = 4 * GiB, .writers = 1, .targets = 100, .files = 50}), 2U);
  EXPECT_EQ(stripes({.size = 4 * GiB, .writers = 1, .targets = 100, .files = 1000}), 1U);
  EXPECT_EQ(stripes({.size = 40 * GiB, .writers = 64, .ranks = 64, .targets = 96, .files = 4}),
            24U);
}

std::string text_of(const StripedParts& growing) {
  std::ostringstream out;
  for (const StripedPart& part : growing.parts())
    out << part.range.begin / MiB << "M-"
        << (part.range.end == kToTheEnd ? "end" : std::to_string(part.range.end / MiB) + "M") << ":"
        << part.striping.targets << "x" << part.striping.unit / MiB << "M ";
  return out.str();
}

TEST(StripePolicy, FilesThatGrowGetWhatTheTableSaysOfTheSizesTheyPass) {
  EXPECT_EQ(text_of(growing_stripes({.writers = 1})),
            "0M-1024M:1x1M 1024M-95368M:4x4M 95368M-end:10x4M ");
  EXPECT_EQ(text_of(growing_stripes({.writers = 64})), "0M-32M:1x1M 32M-end:64x4M ");
  EXPECT_EQ(text_of(growing_stripes({.writers = 1000})),
            "0M-32M:1x1M 32M-381472M:80x4M 381472M-end:160x4M ");
}

TEST(StripePolicy, FilesThatGrowGetNoMoreTargetsThanThereAre) {
  EXPECT_EQ(text_of(growing_stripes({.writers = 1, .targets = 2})),
            "0M-1024M:1x1M 1024M-end:2x4M ");
  EXPECT_EQ(text_of(growing_stripes({.writers = 64, .targets = 8})), "0M-32M:1x1M 32M-end:8x4M ");
}

TEST(StripePolicy, PartsOfFilesThatGrowFollowEachOtherAndEndWhereAStripeDoes) {
  for (const std::uint32_t writers : {1U, 2U, 5U, 100U, 5000U})
    for (const std::uint32_t targets : {0U, 1U, 7U, 1000U}) {
      const StripedParts growing = growing_stripes({.writers = writers, .targets = targets});
      std::uint64_t at = 0;
      for (const StripedPart& part : growing.parts()) {
        EXPECT_EQ(part.range.begin, at);
        EXPECT_TRUE(part.range.end == kToTheEnd || part.range.end % part.striping.unit == 0)
            << part.range.end;
        at = part.range.end;
      }
      EXPECT_EQ(at, kToTheEnd);
    }
}

TEST(StripePolicy, RowsCoverAllSizesAndStripesAreMultiplesOfTheGranule) {
  for (const StripeRule& rule : stripe_rules()) {
    EXPECT_EQ(rule.unit % kStripeGranule, 0U) << rule.name;
    EXPECT_LE(rule.least, rule.most) << rule.name;
    EXPECT_FALSE(rule.sizes.empty()) << rule.name;
  }
  for (const std::uint64_t size :
       {std::uint64_t{0}, 256 * MiB, 1 * GiB, 100 * GB, 400 * GB, ~std::uint64_t{0}})
    for (const std::uint32_t writers : {1U, 2U}) {
      const StripeRule& rule = *choose_stripes({.size = size, .writers = writers}).rule;
      EXPECT_TRUE(rule.sizes.contains(std::min(size, kToTheEnd - 1))) << size << " " << rule.name;
    }
}

}  // namespace
}  // namespace pario::layout
