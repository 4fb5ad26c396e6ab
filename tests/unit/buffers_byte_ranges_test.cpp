// Byte ranges, compared with a model of single bytes.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "layers/buffers/byte_ranges.hpp"

namespace {

using pario::buffers::ByteRanges;

std::vector<bool> bytes_of(const ByteRanges& ranges, std::size_t size) {
  std::vector<bool> bytes(size);
  for (const auto& range : ranges.ranges())
    for (auto i = range.begin; i < range.end; ++i) bytes[i] = true;
  return bytes;
}

TEST(ByteRanges, StaySortedDisjointAndNotAdjacent) {
  constexpr std::uint32_t kSize = 300;
  std::mt19937 generator(7);
  const auto random = [&](std::uint32_t below) {
    return static_cast<std::uint32_t>(generator() % below);
  };
  for (int round = 0; round < 300; ++round) {
    ByteRanges ranges;
    std::vector<bool> model(kSize);
    for (int i = 0; i < 40; ++i) {
      const std::uint32_t begin = random(kSize - 1), end = begin + 1 + random(20);
      ASSERT_TRUE(ranges.add(begin, std::min(end, kSize)));
      std::fill(model.begin() + begin, model.begin() + std::min(end, kSize), true);
      ASSERT_EQ(bytes_of(ranges, kSize), model);
      for (std::size_t k = 1; k < ranges.ranges().size(); ++k)
        ASSERT_GT(ranges.ranges()[k].begin, ranges.ranges()[k - 1].end);
    }
  }
}

TEST(ByteRanges, RejectARangeThatDoesNotFitAndDoNotChange) {
  ByteRanges ranges;
  std::uint32_t count = 0;
  while (ranges.add(count * 10, count * 10 + 3)) ++count;
  EXPECT_EQ(ranges.ranges().size(), count);
  EXPECT_EQ(ranges.total_bytes(), count * 3);
  EXPECT_TRUE(ranges.add(3, 10)) << "a range that joins two needs no room";
  EXPECT_EQ(ranges.ranges().size(), count - 1);
}

TEST(ByteRanges, ContainBytesThatLieInOneRange) {
  ByteRanges ranges;
  ranges.add(10, 20);
  ranges.add(30, 40);
  EXPECT_TRUE(ranges.contains(12, 20));
  EXPECT_FALSE(ranges.contains(12, 21));
  EXPECT_FALSE(ranges.contains(15, 35));
}

}  // namespace
