// The choice of stores into windows follows their cost.
#include <gtest/gtest.h>

#include "parallel/exchange/store_choice.hpp"

namespace pario::exchange {
namespace {

constexpr std::uint64_t kWindowBytes = 256 << 10;

/// Counts the windows stored with non-temporal stores if a window takes these times.
int count_non_temporal(StoreChoice& store_choice, int windows, std::uint64_t cached_ns,
                       std::uint64_t non_temporal_ns) {
  int count = 0;
  for (int i = 0; i < windows; ++i) {
    const bool non_temporal = store_choice.use_non_temporal();
    count += non_temporal ? 1 : 0;
    store_choice.add_sample(non_temporal, kWindowBytes, non_temporal ? non_temporal_ns : cached_ns);
  }
  return count;
}

TEST(StoreChoice, IsTriedAtFirstAndAtIntervals) {
  StoreChoice store_choice;
  EXPECT_EQ(count_non_temporal(store_choice, 2, 12'000, 10'000), 1);
  const int looks = count_non_temporal(store_choice, 1000, 12'000, 10'000);
  EXPECT_GE(looks, 1);
  EXPECT_LE(looks, 20);
}

TEST(StoreChoice, IsChosenIfItIsMuchFaster) {
  StoreChoice store_choice;
  EXPECT_GE(count_non_temporal(store_choice, 1000, 120'000, 10'000), 980);
}

TEST(StoreChoice, FollowsAPlaceThatChanges) {
  StoreChoice store_choice;
  count_non_temporal(store_choice, 1000, 12'000, 10'000);
  count_non_temporal(store_choice, 1000, 120'000, 10'000);
  EXPECT_GE(count_non_temporal(store_choice, 1000, 120'000, 10'000), 980);
  count_non_temporal(store_choice, 1000, 12'000, 10'000);
  EXPECT_LE(count_non_temporal(store_choice, 1000, 12'000, 10'000), 20);
}

TEST(StoreChoice, OneThatWasInterruptedChangesNothing) {
  StoreChoice store_choice;
  count_non_temporal(store_choice, 100, 12'000, 10'000);
  store_choice.add_sample(false, kWindowBytes, 60'000);
  EXPECT_LE(count_non_temporal(store_choice, 100, 12'000, 10'000), 2);
}

TEST(StoreChoice, FewBytesTellNothing) {
  StoreChoice store_choice;
  store_choice.add_sample(false, 64, 1'000'000);
  EXPECT_FALSE(store_choice.use_non_temporal());
}

}  // namespace
}  // namespace pario::exchange
