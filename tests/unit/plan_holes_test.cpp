#include <gtest/gtest.h>

#include "parallel/plan/plan.hpp"

namespace pario::plan {
namespace {

constexpr std::uint64_t kMebibyte = 1 << 20;
const layout::StripeLayout kDisk{layout::Kind::local, 4096, 1};

hints::FileHints with(const char* key, const char* value) {
  hints::FileHints hints = hints::default_file_hints();
  std::string reason;
  EXPECT_TRUE(hints::set(hints, {key, value}, reason)) << reason;
  return hints;
}

/// The plan of two ranks whose small runs leave holes, on kDisk.
Plan make_holed_plan(const hints::FileHints& hints) {
  const pattern::Summary rank{.span = {0, kMebibyte}, .bytes = kMebibyte / 4, .pieces = 64};
  const std::vector<pattern::Summary> ranks{rank, rank};
  const std::vector<int> node_of{0, 0};
  return make_plan({Direction::write, ranks, node_of, kDisk}, hints);
}

TEST(Holes, WindowWithoutThemIsWritten) {
  const Plan plan = make_holed_plan(hints::default_file_hints());
  EXPECT_EQ(choose_holes(plan, 1, kMebibyte, 0), Holes::none);
}

TEST(Holes, FewRunsAreWrittenByThemselves) {
  const Plan plan = make_holed_plan(hints::default_file_hints());
  EXPECT_EQ(choose_holes(plan, 3, 2 * kMebibyte, 2 * kMebibyte), Holes::runs);
}

TEST(Holes, ManySmallRunsAreReadAndWrittenBack) {
  const Plan plan = make_holed_plan(hints::default_file_hints());
  EXPECT_EQ(choose_holes(plan, 32768, 2 * kMebibyte, 2 * kMebibyte), Holes::modify);
}

TEST(Holes, HintDecidesFirst) {
  const Plan disabled = make_holed_plan(with("romio_ds_write", "disable"));
  EXPECT_EQ(choose_holes(disabled, 32768, 2 * kMebibyte, 2 * kMebibyte), Holes::runs);
  const Plan enabled = make_holed_plan(with("romio_ds_write", "enable"));
  EXPECT_EQ(choose_holes(enabled, 1, 2 * kMebibyte, 2 * kMebibyte), Holes::modify);
}

TEST(Independent, OneRunIsOneRequestForAnyMemory) {
  const pattern::Summary access{{0, kMebibyte}, kMebibyte, 1, 4096, 1000};
  EXPECT_EQ(plan_independent(Direction::write, access, kDisk, hints::default_file_hints()).way,
            Independent::contiguous);
}

TEST(Independent, AsManyBytesAsTheSpanAreNoProofOfOneRun) {
  const pattern::Summary overlapping{{0, kMebibyte}, kMebibyte, 4, 4096, 1};
  EXPECT_NE(plan_independent(Direction::read, overlapping, kDisk, hints::default_file_hints()).way,
            Independent::contiguous);
  EXPECT_EQ(plan_independent(Direction::write, overlapping, kDisk, hints::default_file_hints()).way,
            Independent::list);
}

TEST(Independent, SievedWritesAreLockedAndReadsAreNot) {
  const pattern::Summary access{{0, kMebibyte}, kMebibyte / 2, 8192, 64, 1};
  const auto write = plan_independent(Direction::write, access, kDisk, hints::default_file_hints());
  EXPECT_EQ(write.way, Independent::sieve);
  EXPECT_EQ(write.window, 512u << 10);
  EXPECT_TRUE(write.lock);
  const auto read = plan_independent(Direction::read, access, kDisk, hints::default_file_hints());
  EXPECT_EQ(read.way, Independent::sieve);
  EXPECT_EQ(read.window, 4 * kMebibyte);
  EXPECT_FALSE(read.lock);
}

TEST(Independent, HintDecidesIfItIsSafe) {
  const pattern::Summary access{{0, kMebibyte}, kMebibyte / 2, 8192, 64, 1};
  EXPECT_EQ(
      plan_independent(Direction::write, access, kDisk, with("romio_ds_write", "disable")).way,
      Independent::list);
  const layout::StripeLayout beegfs{layout::Kind::beegfs, 512 << 10, 4};
  EXPECT_EQ(
      plan_independent(Direction::write, access, beegfs, with("romio_ds_write", "enable")).way,
      Independent::list);
}

}  // namespace
}  // namespace pario::plan
