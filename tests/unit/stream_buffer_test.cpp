// Runs of written bytes, against a model of single bytes.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "stream/buffer.hpp"

namespace {

using pario::stream::Runs;

std::vector<bool> bytes_of(const Runs& runs, std::size_t size) {
  std::vector<bool> bytes(size);
  for (const auto& run : runs.all())
    for (auto i = run.begin; i < run.end; ++i) bytes[i] = true;
  return bytes;
}

TEST(Runs, AreSortedDisjointAndNeverTouch) {
  constexpr std::uint32_t kSize = 300;
  std::mt19937 generator(7);
  const auto random = [&](std::uint32_t below) { return static_cast<std::uint32_t>(generator() % below); };
  for (int round = 0; round < 300; ++round) {
    Runs runs;
    std::vector<bool> model(kSize);
    for (int i = 0; i < 40; ++i) {
      const std::uint32_t begin = random(kSize - 1), end = begin + 1 + random(20);
      ASSERT_TRUE(runs.add(begin, std::min(end, kSize)));
      std::fill(model.begin() + begin, model.begin() + std::min(end, kSize), true);
      ASSERT_EQ(bytes_of(runs, kSize), model);
      for (std::size_t k = 1; k < runs.all().size(); ++k) ASSERT_GT(runs.all()[k].begin, runs.all()[k - 1].end);
    }
  }
}

TEST(Runs, RefuseOneTooManyAndStayAsTheyWere) {
  Runs runs;
  std::uint32_t count = 0;
  while (runs.add(count * 10, count * 10 + 3)) ++count;
  EXPECT_EQ(runs.all().size(), count);
  EXPECT_EQ(runs.bytes(), count * 3);
  EXPECT_TRUE(runs.add(3, 10)) << "one that joins two is no more";
  EXPECT_EQ(runs.all().size(), count - 1);
}

TEST(Runs, ContainWhatLiesInOneOfThem) {
  Runs runs;
  runs.add(10, 20);
  runs.add(30, 40);
  EXPECT_TRUE(runs.contains(12, 20));
  EXPECT_FALSE(runs.contains(12, 21));
  EXPECT_FALSE(runs.contains(15, 35));
}

}  // namespace
