#include <gtest/gtest.h>

#include "core/pattern/pattern.hpp"

namespace pario::pattern {
namespace {

TypeMap layout(std::string_view text) {
  base::Result<TypeMap> parsed = TypeMap::parse(text);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().text());
  return parsed.ok() ? *parsed : TypeMap();
}

std::string normal(std::string_view text) { return layout(text).text(); }

std::string complaint(std::string_view text) {
  const base::Result<TypeMap> parsed = TypeMap::parse(text);
  return parsed.ok() ? "none" : parsed.error().detail;
}

std::string runs(Cursor cursor) {
  std::string text;
  for (Run run = cursor.current(); run.length > 0; run = cursor.current()) {
    text +=
        (text.empty() ? "" : " ") + std::to_string(run.offset) + "+" + std::to_string(run.length);
    cursor.advance(run.length);
  }
  return text;
}

TEST(TypeMap, IsWrittenAsItIsRead) {
  for (const char* text : {"0", "8", "4x8/16", "3x(2x8/16)/100", "[0:8 24:4x8/16]", "8@-8+32",
                           "[4:8]", "[0:8 20:8 48:8]", "[0:8 20:4]", "2x[0:8 20:4]/64", "4x8/-16",
                           "[-24:4x8/16]@-24+100", "2x8/4", "0@3+5"})
    EXPECT_EQ(normal(text), text);
}

TEST(TypeMap, IsTheSameHoweverItIsBuilt) {
  EXPECT_EQ(normal("4x8/8"), "32") << "a repeat without gaps is a block";
  EXPECT_EQ(normal("1x8/100"), "8");
  EXPECT_EQ(normal("3x(4x8/16)/64"), "12x8/16") << "a repeat of repeats that go on is one repeat";
  EXPECT_EQ(normal("[0:8 8:8]"), "16") << "blocks that meet are one block";
  EXPECT_EQ(normal("[0:8 16:8 32:8]"), "3x8/16") << "even spacing is a repeat";
  EXPECT_EQ(normal("[0:0 8:0 16:8]"), "[16:8]") << "empty parts are dropped";
  EXPECT_EQ(normal("0x8/16"), "0");
  EXPECT_EQ(normal("2x(8@0+32)/32"), "2x8/32@0+64") << "only the outer bounds are kept";
  EXPECT_EQ(layout("[0:8 16:8]"), layout("2x8/16"));
  EXPECT_EQ(layout("[0:2x8/16 32:8]"), layout("3x8/16")) << "compared by their bytes";
  EXPECT_NE(layout("[16:8 0:8]"), layout("2x8/16")) << "the order matters";
  EXPECT_NE(layout("8@0+16"), layout("8")) << "so do the bounds";
}

TEST(TypeMap, SaysWhereItsTextIsWrong) {
  EXPECT_EQ(complaint(""), "\"\", character 1: expected a number, '[' or '(', found the end");
  EXPECT_EQ(complaint("4x8"), "\"4x8\", character 4: expected '/' and a stride, found the end");
  EXPECT_EQ(complaint("4x8/y"), "\"4x8/y\", character 5: expected a stride, found 'y'");
  EXPECT_EQ(complaint("[0:8 8]"), "\"[0:8 8]\", character 7: expected ':' and a layout, found ']'");
  EXPECT_EQ(complaint("[0:8"), "\"[0:8\", character 5: expected ' ' or ']', found the end");
  EXPECT_EQ(complaint("8@4"), "\"8@4\", character 4: expected '+' and an extent, found the end");
  EXPECT_EQ(complaint("(8"), "\"(8\", character 3: expected ')', found the end");
  EXPECT_EQ(complaint("8 8"), "\"8 8\", character 2: expected the end, found ' '");
  EXPECT_EQ(complaint("99999999999999999999"),
            "\"99999999999999999999\", character 1: expected a smaller number, found '9'");
  EXPECT_EQ(complaint("4611686018427387904x8/8").substr(27),
            "character 1: expected a layout of less than 2^63 bytes, found '4'");
}

// MPI's rules: bounds are hulls of the parts' bounds, not of their data.
TEST(TypeMap, HasBoundsAndTrueBounds) {
  const TypeMap padded = layout("3x(8@-4+32)/32");
  EXPECT_EQ(padded.size(), 24u);
  EXPECT_EQ(padded.lower(), -4);
  EXPECT_EQ(padded.extent(), 96);
  EXPECT_EQ(padded.true_lower(), 0);
  EXPECT_EQ(padded.true_extent(), 72);
  EXPECT_EQ(layout("[8:8 -16:4]").lower(), -16);
  EXPECT_EQ(layout("[8:8 -16:4]").extent(), 32);
  EXPECT_EQ(layout("[8:8 100:0]").extent(), 8)
      << "a part without data and bounds counts for nothing";
  EXPECT_EQ(layout("[8:8 100:0@0+4]").extent(), 96) << "bounds without data count";
  EXPECT_EQ(layout("4x8/-16").true_lower(), -48);
  EXPECT_EQ(layout("4x8/-16").lower(), -48);
}

TEST(TypeMap, KnowsItsShape) {
  EXPECT_TRUE(layout("8").contiguous());
  EXPECT_TRUE(TypeMap().contiguous());
  EXPECT_FALSE(layout("[4:8]").contiguous()) << "begins elsewhere";
  EXPECT_FALSE(layout("8@0+16").contiguous());
  EXPECT_FALSE(layout("[4:4 0:4]").contiguous()) << "not in order";
  EXPECT_TRUE(layout("4x8/16").monotonic());
  EXPECT_FALSE(layout("4x8/-16").monotonic());
  EXPECT_TRUE(layout("2x8/4").monotonic());
  EXPECT_TRUE(layout("2x8/4").overlapping());
  EXPECT_FALSE(layout("4x8/-16").overlapping());
  EXPECT_FALSE(layout("2x(4x8/32)/8").overlapping()) << "interleaved, not overlapping";
  EXPECT_FALSE(layout("2x(4x8/32)/8").monotonic());
  EXPECT_EQ(layout("3x8/16").granule(), 8u);
  EXPECT_EQ(layout("3x8/20").granule(), 4u);
  EXPECT_EQ(layout("[1:8]").granule(), 1u);
  EXPECT_EQ(layout("1048576").granule(), kMaxGranule);
  EXPECT_EQ(TypeMap().granule(), 0u);
  EXPECT_EQ(layout("3x[0:8 24:8]/32").pieces(), 4u)
      << "the last piece of a copy goes on in the next";
}

TEST(TypeMap, ALongTextIsEmptyAndAShortOneOfManyPiecesIsNot) {
  EXPECT_EQ(layout("1000000x8/16").text(20), "1000000x8/16");
  EXPECT_EQ(layout("1000000x8/16").text(11), "");
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < 1000; ++i) places.push_back(i * i * 16);
  const TypeMap list =
      TypeMap::make_indexed(TypeMap::block(8), places, std::vector<std::uint64_t>{1});
  EXPECT_GT(list.text().size(), 8192u);
  EXPECT_EQ(list.text(8192), "");
}

TEST(TypeMap, ToleratesHugeCounts) {
  const TypeMap huge = TypeMap::repeat(layout("1@0+2"), std::uint64_t{1} << 61, 2);
  EXPECT_EQ(huge.size(), std::uint64_t{1} << 61);
  EXPECT_EQ(runs(Cursor(huge, (std::uint64_t{1} << 61) - 2, 2)),
            "4611686018427387900+1 4611686018427387902+1");
  EXPECT_EQ(TypeMap::repeat(TypeMap::block(1), std::uint64_t{1} << 62, 1).text(),
            "4611686018427387904");
}

TEST(TypeMap, KeepsLongListsCompact) {
  std::vector<std::int64_t> places;
  std::vector<std::uint64_t> counts;
  for (std::int64_t i = 0; i < 100000; ++i) {
    places.push_back(i * 40 + i % 3);
    counts.push_back(1 + static_cast<std::uint64_t>(i % 4));
  }
  const TypeMap list = TypeMap::make_indexed(TypeMap::block(8), places, counts);
  EXPECT_EQ(list.pieces(), 100000u);
  EXPECT_TRUE(list.monotonic());
  EXPECT_EQ(runs(Cursor(list, list.size() - 32, 32)), std::to_string(places.back()) + "+32");
}

TEST(Cursor, JoinsPiecesAcrossLevelsAndCopies) {
  EXPECT_EQ(runs(Cursor(layout("[0:8 24:8]@0+32"), 0, 48)), "0+8 24+16 56+16 88+8");
  EXPECT_EQ(runs(Cursor(layout("8"), 4, 100)), "4+100");
  EXPECT_EQ(runs(Cursor(layout("8@0+-16"), 0, 20)), "0+8 -16+8 -32+4") << "extents may be negative";
  EXPECT_EQ(runs(Cursor(layout("8@0+0"), 0, 16)), "0+8 0+8") << "or zero";
}

TEST(Cursor, SkipsToAnOffset) {
  Cursor cursor(layout("4x8/16@0+128"), 4, 100);
  cursor.seek_offset(20);
  EXPECT_EQ(cursor.current().offset, 20);
  EXPECT_EQ(cursor.position(), 12u);
  cursor.seek_offset(10);
  EXPECT_EQ(cursor.position(), 12u) << "never back";
  cursor.seek_offset(60);
  EXPECT_EQ(cursor.current().offset, 128);
  EXPECT_EQ(cursor.current().length, 8u);
  cursor.seek_offset(100000);
  EXPECT_EQ(cursor.remaining(), 0u);
}

TEST(FileView, CountsBytesOfItsTiles) {
  const FileView view{.displacement = 100, .filetype = layout("[4:4 12:4]@0+16")};
  EXPECT_EQ(view.offset_of(0), 104u);
  EXPECT_EQ(view.offset_of(5), 113u);
  EXPECT_EQ(view.offset_of(8), 120u);
  EXPECT_EQ(view.position_of(0), 0u);
  EXPECT_EQ(view.position_of(106), 2u);
  EXPECT_EQ(view.position_of(110), 4u) << "in a hole";
  EXPECT_EQ(view.position_of(116), 8u);
  EXPECT_EQ(view.position_of(100 + 16 * 1000), 8000u);
}

TEST(FileView, FindsTheRunOfAnAccessWithinABlock) {
  const auto find = [](const TypeMap& filetype, std::uint64_t position, std::uint64_t bytes) {
    return FileView{.displacement = 1000, .filetype = filetype}.find_run(position, bytes);
  };
  using base::Extent;
  EXPECT_EQ(find(TypeMap::block(1), 5, 10), (Extent{1005, 1015}));
  const auto turn = *TypeMap::parse("[16:8]@0+32");
  EXPECT_EQ(find(turn, 0, 8), (Extent{1016, 1024}));
  EXPECT_EQ(find(turn, 18, 6), (Extent{1082, 1088}));
  EXPECT_TRUE(find(turn, 18, 7).empty()) << "of two copies";
  const auto strip = *TypeMap::parse("4x8/16");
  EXPECT_EQ(find(strip, 8, 8), (Extent{1016, 1024}));
  EXPECT_EQ(find(strip, 32 + 24 + 1, 2), (Extent{1000 + 56 + 48 + 1, 1000 + 56 + 48 + 3}));
  EXPECT_TRUE(find(strip, 4, 8).empty()) << "of two blocks";
  EXPECT_TRUE(find(turn, 0, 0).empty());
  EXPECT_TRUE(find(TypeMap(), 0, 8).empty());
  EXPECT_TRUE(find(turn, std::uint64_t{1} << 62, 8).empty()) << "behind the largest file";
  EXPECT_TRUE(find(TypeMap::block(1), INT64_MAX - 1004, 8).empty());
}

TEST(Summary, IsOfTheBytesTouched) {
  Access access{.view = {.displacement = 4096, .filetype = layout("[64:2x64/128]@0+1024")},
                .position = 64,
                .bytes = 128};
  const Summary summary = summarise(access);
  EXPECT_EQ(summary.span, (base::Extent{4096 + 192, 4096 + 1024 + 128}));
  EXPECT_EQ(summary.bytes, 128u);
  EXPECT_EQ(summary.pieces, 2u);
  EXPECT_EQ(summary.granule, 64u);
  EXPECT_EQ(summary.memory_pieces, 1u);
  access.view.filetype = TypeMap::block(1);
  access.bytes = 8192;
  EXPECT_EQ(summarise(access).granule, 64u) << "a plain view: only where it begins and ends counts";
  access.bytes = 0;
  EXPECT_EQ(summarise(access).pieces, 0u);
  EXPECT_TRUE(summarise(access).span.empty());
}

TEST(CoverageRuns, AreTheUnion) {
  std::vector<std::uint64_t> one(coverage_words(1000, 8)), other(one.size());
  const std::vector<Coverage> both{{one.data(), 8}, {other.data(), 8}};
  one[0] = 0b0011, other[0] = 0b1100;
  one[1] = ~std::uint64_t{0};
  const base::Extent stretch{4096, 5096};
  CoverageRuns covered(stretch, both);
  EXPECT_EQ(covered.next(), (base::Extent{4096, 4128}));
  EXPECT_EQ(covered.next(), (base::Extent{4096 + 512, 5096})) << "cut at the end of the stretch";
  EXPECT_TRUE(covered.next().empty());
  EXPECT_TRUE(CoverageRuns(stretch, {}).next().empty());
}

TEST(CopyPastCaches, CopiesWhateverItsEnds) {
  std::vector<std::byte> from(1024);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7);
  for (const std::size_t begin : {0, 1, 15, 63, 64}) {
    for (const std::size_t length : {0, 1, 63, 64, 65, 128, 700}) {
      std::vector<std::byte> to(1024), expected(1024);
      std::copy_n(from.begin() + 3, length, expected.begin() + static_cast<std::ptrdiff_t>(begin));
      copy_past_caches(to.data() + begin, std::span(from).subspan(3, length));
      EXPECT_EQ(to, expected) << begin << " " << length;
    }
  }
}

}  // namespace
}  // namespace pario::pattern
