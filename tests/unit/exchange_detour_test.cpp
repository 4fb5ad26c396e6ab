// Which way windows are stored into follows what it costs.
#include <gtest/gtest.h>

#include "exchange/detour.hpp"

namespace pario::exchange {
namespace {

constexpr std::uint64_t kDetourWindow = 256 << 10;

/// How many of `windows` go past the caches where a window takes so long.
int detours(Detour& detour, int windows, std::uint64_t usual_ns, std::uint64_t detour_ns) {
  int count = 0;
  for (int i = 0; i < windows; ++i) {
    const bool past_caches = detour.next();
    count += past_caches ? 1 : 0;
    detour.took(past_caches, kDetourWindow, past_caches ? detour_ns : usual_ns);
  }
  return count;
}

TEST(Detour, IsLookedAtOnceAndAgainNowAndThen) {
  Detour detour;
  EXPECT_EQ(detours(detour, 2, 12'000, 10'000), 1);
  const int looks = detours(detour, 1000, 12'000, 10'000);
  EXPECT_GE(looks, 1);
  EXPECT_LE(looks, 20);
}

TEST(Detour, IsTakenWhereItIsMuchFaster) {
  Detour detour;
  EXPECT_GE(detours(detour, 1000, 120'000, 10'000), 980);
}

TEST(Detour, FollowsAPlaceThatChanges) {
  Detour detour;
  detours(detour, 1000, 12'000, 10'000);
  detours(detour, 1000, 120'000, 10'000);
  EXPECT_GE(detours(detour, 1000, 120'000, 10'000), 980);
  detours(detour, 1000, 12'000, 10'000);
  EXPECT_LE(detours(detour, 1000, 12'000, 10'000), 20);
}

TEST(Detour, OneThatWasInterruptedChangesNothing) {
  Detour detour;
  detours(detour, 100, 12'000, 10'000);
  detour.took(false, kDetourWindow, 60'000);
  EXPECT_LE(detours(detour, 100, 12'000, 10'000), 2);
}

TEST(Detour, FewBytesTellNothing) {
  Detour detour;
  detour.took(false, 64, 1'000'000);
  EXPECT_FALSE(detour.next());
}

}  // namespace
}  // namespace pario::exchange
