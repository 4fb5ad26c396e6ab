#include <gtest/gtest.h>

#include "plan/plan.hpp"

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

TEST(Holes, WindowWithoutThemIsWritten) { EXPECT_EQ(choose_holes(1, kMebibyte, 0, kDisk, hints::default_file_hints()), Holes::none); }

TEST(Holes, FewRunsAreWrittenByThemselves) {
  EXPECT_EQ(choose_holes(3, 2 * kMebibyte, 2 * kMebibyte, kDisk, hints::default_file_hints()), Holes::runs);
}

TEST(Holes, ManySmallRunsAreReadAndWrittenBack) {
  EXPECT_EQ(choose_holes(32768, 2 * kMebibyte, 2 * kMebibyte, kDisk, hints::default_file_hints()), Holes::modify);
}

TEST(Holes, HintDecidesFirst) {
  EXPECT_EQ(choose_holes(32768, 2 * kMebibyte, 2 * kMebibyte, kDisk, with("romio_ds_write", "disable")), Holes::runs);
  EXPECT_EQ(choose_holes(1, 2 * kMebibyte, 2 * kMebibyte, kDisk, with("romio_ds_write", "enable")), Holes::modify);
}

TEST(Independent, OneRunIsOneRequestWhateverItsMemory) {
  const pattern::Summary access{{0, kMebibyte}, kMebibyte, 1, 4096, 1000};
  EXPECT_EQ(plan_independent(Direction::write, access, kDisk, hints::default_file_hints()).way, Independent::contiguous);
}

TEST(Independent, AsManyBytesAsTheSpanAreNoProofOfOneRun) {
  const pattern::Summary overlapping{{0, kMebibyte}, kMebibyte, 4, 4096, 1};
  EXPECT_NE(plan_independent(Direction::read, overlapping, kDisk, hints::default_file_hints()).way, Independent::contiguous);
  EXPECT_EQ(plan_independent(Direction::write, overlapping, kDisk, hints::default_file_hints()).way, Independent::list);
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

TEST(Independent, HintDecidesWhereItIsSafe) {
  const pattern::Summary access{{0, kMebibyte}, kMebibyte / 2, 8192, 64, 1};
  EXPECT_EQ(plan_independent(Direction::write, access, kDisk, with("romio_ds_write", "disable")).way, Independent::list);
  const layout::StripeLayout beegfs{layout::Kind::beegfs, 512 << 10, 4};
  EXPECT_EQ(plan_independent(Direction::write, access, beegfs, with("romio_ds_write", "enable")).way, Independent::list);
}

}  // namespace
}  // namespace pario::plan
