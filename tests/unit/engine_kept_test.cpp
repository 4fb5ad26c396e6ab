// Kept bytes: joined and sorted; later bytes replace earlier ones.
#include "parallel/engine/kept_bytes.hpp"

#include <array>

#include "engine_support.hpp"
#include "parallel/engine/merged_writes.hpp"

namespace pario::engine {
namespace {

std::vector<std::byte> make_bytes(std::size_t size, int value) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

void add(KeptBytes& kept, std::vector<std::byte> bytes, std::uint64_t offset) {
  const pattern::Access access = plain(bytes, offset);
  kept.add(access, pattern::summarise(access).span);
}

/// Applies a batch to a file of `size` bytes of value 9.
std::vector<std::byte> apply(const KeptBytes::Batch& batch, std::size_t size) {
  std::vector<std::byte> image = make_bytes(size, 9);
  pattern::Walker(batch.access).gather({0, size}, image.data(), {});
  return image;
}

TEST(EngineKept, JoinsAdjacentRunsAndSortsTheOthers) {
  KeptBytes kept;
  add(kept, make_bytes(10, 3), 70);
  add(kept, make_bytes(10, 1), 10);
  add(kept, make_bytes(10, 2), 20);
  const KeptBytes::Batch batch = kept.take_batch();
  const pattern::Summary summary = pattern::summarise(batch.access);
  EXPECT_EQ(summary.span, (base::Extent{10, 80}));
  EXPECT_EQ(summary.bytes, 30u);
  EXPECT_EQ(summary.pieces, 2u);
  EXPECT_TRUE(kept.empty());
  EXPECT_EQ(kept.take_batch().access.bytes, 0u);
}

TEST(EngineKept, LaterBytesLieOverEarlierOnes) {
  KeptBytes kept;
  add(kept, make_bytes(4, 1), 4);
  add(kept, make_bytes(8, 2), 6);
  add(kept, make_bytes(2, 3), 5);
  std::vector<std::byte> expected = make_bytes(20, 9);
  for (const auto& [at, value] : {std::pair{4, 1},
                                  {5, 3},
                                  {6, 3},
                                  {7, 2},
                                  {8, 2},
                                  {9, 2},
                                  {10, 2},
                                  {11, 2},
                                  {12, 2},
                                  {13, 2}})
    expected[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
  EXPECT_EQ(apply(kept.take_batch(), 20), expected);
}

TEST(EngineKept, KeepsEveryPieceOfAView) {
  KeptBytes kept;
  std::vector<std::byte> bytes(300);
  pattern::Access access = plain(bytes, 0);
  access.view = make_alternating_view(1, 3, 2);
  fill(access);
  const pattern::Summary summary = pattern::summarise(access);
  kept.add(access, summary.span);
  EXPECT_EQ(kept.memory(), KeptBytes::memory_for(summary));
  std::vector<std::byte> expected = make_bytes(900, 9);
  for (std::size_t i = 0; i < 900; ++i)
    if (i / 2 % 3 == 1) expected[i] = byte_at(i);
  EXPECT_EQ(apply(kept.take_batch(), 900), expected);
}

TEST(EngineKept, FindsOverlaps) {
  KeptBytes kept;
  EXPECT_FALSE(kept.overlaps({0, 100}));
  add(kept, make_bytes(10, 1), 10);
  add(kept, make_bytes(10, 1), 50);
  EXPECT_TRUE(kept.overlaps({19, 30}));
  EXPECT_FALSE(kept.overlaps({20, 50}));
  EXPECT_FALSE(kept.overlaps({60, 70}));
  EXPECT_EQ(kept.hull(), (base::Extent{10, 60}));
}

TEST(EngineMerged, FitsIfTheFullestRankHasMemory) {
  MergedWrites merged;
  const pattern::Summary few{.span = {0, 100}, .bytes = 100, .pieces = 1},
      many{.span = {100, 1100}, .bytes = 1000, .pieces = 1};
  const std::vector ranks{few, many};
  std::vector<std::byte> bytes(100);
  const std::uint64_t bound = 2 * (2 * KeptBytes::memory_for(many));
  EXPECT_TRUE(merged.fits(ranks, bound));
  merged.add(plain(bytes, 0), few.span, ranks);
  EXPECT_TRUE(merged.fits(ranks, bound));
  EXPECT_FALSE(merged.fits(ranks, bound - 2)) << "the second rank";
  EXPECT_EQ(merged.end(), 1100u);
  EXPECT_TRUE(merged.take_own().access.bytes == 100 && merged.any())
      << "the others' bytes are still to come";
  EXPECT_TRUE(merged.take_all().access.bytes == 0 && !merged.any());
}

pattern::Summary run_of(std::uint64_t begin, std::uint64_t end) {
  return {.span = {begin, end}, .bytes = end - begin, .pieces = 1};
}

TEST(EngineMergedSpans, FindCallsThatOverlapEarlierOnesOfOtherRanks) {
  MergedSpans spans;
  const pattern::Summary nothing{};
  const auto overlap = [&](const pattern::Summary& first, const pattern::Summary& second) {
    return spans.overlap_others(std::array{first, second});
  };
  spans.add(std::array{run_of(0, 100), run_of(100, 200)});
  EXPECT_FALSE(overlap(run_of(0, 100), run_of(100, 200))) << "each rank its own bytes";
  EXPECT_FALSE(overlap(run_of(200, 300), run_of(300, 400)));
  EXPECT_TRUE(overlap(nothing, run_of(99, 100)));
  EXPECT_TRUE(overlap(run_of(50, 101), nothing));
  spans.add(std::array{run_of(20, 100), run_of(200, 300)});
  EXPECT_TRUE(overlap(run_of(299, 400), nothing)) << "the extent has grown";
  spans.add(std::array{run_of(1000, 1190), run_of(1010, 1200)});
  EXPECT_TRUE(overlap(run_of(1000, 1010), nothing)) << "runs that alternate are not known";
  EXPECT_FALSE(overlap(run_of(1200, 1390), run_of(1210, 1400)));
  spans.clear();
  EXPECT_FALSE(overlap(run_of(0, 2000), run_of(0, 2000)));
}

TEST(EngineMergedSpans, ForgetOwnersAfterManyCalls) {
  for (const std::uint64_t distance : {20u, 30u}) {  // calls that touch each other, or do not
    MergedSpans spans;
    for (std::uint64_t call = 0; call < 10'000; ++call) {
      const std::uint64_t at = call * distance;
      const std::array ranks{run_of(at, at + 10), run_of(at + 10, at + 20)};
      ASSERT_FALSE(spans.overlap_others(ranks)) << call;
      spans.add(ranks);
      ASSERT_TRUE(spans.overlap_others(std::array{ranks[1], ranks[0]})) << call;
    }
    EXPECT_TRUE(spans.overlap_others(std::array{run_of(10, 20), run_of(0, 10)}));
  }
}

}  // namespace
}  // namespace pario::engine
