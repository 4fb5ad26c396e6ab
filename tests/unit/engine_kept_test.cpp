// Bytes that are kept back: joined, sorted, later ones over earlier ones.
#include "engine/kept.hpp"

#include "engine/merged.hpp"
#include "engine_support.hpp"

namespace pario::engine {
namespace {

std::vector<std::byte> filled(std::size_t size, int value) { return std::vector<std::byte>(size, static_cast<std::byte>(value)); }

void add(Kept& kept, std::vector<std::byte> bytes, std::uint64_t offset) {
  const pattern::Access access = plain(bytes, offset);
  kept.add(access, pattern::summarise(access).span);
}

/// What a batch does to a file of `size` bytes of value 9.
std::vector<std::byte> applied(const Kept::Batch& batch, std::size_t size) {
  std::vector<std::byte> image = filled(size, 9);
  pattern::Walker(batch.access).gather({0, size}, image.data(), {});
  return image;
}

TEST(EngineKept, JoinsWhatTouchesAndSortsTheRest) {
  Kept kept;
  add(kept, filled(10, 3), 70);
  add(kept, filled(10, 1), 10);
  add(kept, filled(10, 2), 20);
  const Kept::Batch batch = kept.take();
  const pattern::Summary summary = pattern::summarise(batch.access);
  EXPECT_EQ(summary.span, (base::Extent{10, 80}));
  EXPECT_EQ(summary.bytes, 30u);
  EXPECT_EQ(summary.pieces, 2u);
  EXPECT_TRUE(kept.empty());
  EXPECT_EQ(kept.take().access.bytes, 0u);
}

TEST(EngineKept, LaterBytesLieOverEarlierOnes) {
  Kept kept;
  add(kept, filled(4, 1), 4);
  add(kept, filled(8, 2), 6);
  add(kept, filled(2, 3), 5);
  std::vector<std::byte> expected = filled(20, 9);
  for (const auto& [at, value] : {std::pair{4, 1}, {5, 3}, {6, 3}, {7, 2}, {8, 2}, {9, 2}, {10, 2}, {11, 2}, {12, 2}, {13, 2}})
    expected[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
  EXPECT_EQ(applied(kept.take(), 20), expected);
}

TEST(EngineKept, KeepsEveryPieceOfAView) {
  Kept kept;
  std::vector<std::byte> bytes(300);
  pattern::Access access = plain(bytes, 0);
  access.view = dealt(1, 3, 2);
  fill(access);
  const pattern::Summary summary = pattern::summarise(access);
  kept.add(access, summary.span);
  EXPECT_EQ(kept.size(), Kept::size_of(summary));
  std::vector<std::byte> expected = filled(900, 9);
  for (std::size_t i = 0; i < 900; ++i)
    if (i / 2 % 3 == 1) expected[i] = byte_at(i);
  EXPECT_EQ(applied(kept.take(), 900), expected);
}

TEST(EngineKept, TellsWhatItTouches) {
  Kept kept;
  EXPECT_FALSE(kept.touches({0, 100}));
  add(kept, filled(10, 1), 10);
  add(kept, filled(10, 1), 50);
  EXPECT_TRUE(kept.touches({19, 30}));
  EXPECT_FALSE(kept.touches({20, 50}));
  EXPECT_FALSE(kept.touches({60, 70}));
  EXPECT_EQ(kept.hull(), (base::Extent{10, 60}));
}

TEST(EngineMerged, FitsWhereTheFullestRankHasRoom) {
  Merged merged;
  const pattern::Summary few{.span = {0, 100}, .bytes = 100, .pieces = 1}, many{.span = {100, 1100}, .bytes = 1000, .pieces = 1};
  const std::vector ranks{few, many};
  std::vector<std::byte> bytes(100);
  const std::uint64_t bound = 2 * (2 * Kept::size_of(many));
  EXPECT_TRUE(merged.fits(ranks, bound));
  merged.add(plain(bytes, 0), few.span, ranks);
  EXPECT_TRUE(merged.fits(ranks, bound));
  EXPECT_FALSE(merged.fits(ranks, bound - 2)) << "the second rank";
  EXPECT_EQ(merged.end(), 1100u);
  EXPECT_TRUE(merged.take_mine().access.bytes == 100 && merged.any()) << "the others' bytes are still to come";
  EXPECT_TRUE(merged.take().access.bytes == 0 && !merged.any());
}

}  // namespace
}  // namespace pario::engine
