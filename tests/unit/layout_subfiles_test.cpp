// Which byte of a logical file lies in which of its physical files.
#include <gtest/gtest.h>

#include <limits>

#include "core/layout/layout.hpp"

namespace pario::layout {
namespace {

constexpr SubfileMap kMap{100, 3};

TEST(SubfileMap, DealsUnitsToFilesInTurn) {
  EXPECT_EQ(kMap.place_of(0), (SubfileMap::Place{0, 0, 100}));
  EXPECT_EQ(kMap.place_of(199), (SubfileMap::Place{1, 99, 1}));
  EXPECT_EQ(kMap.place_of(299), (SubfileMap::Place{2, 99, 1}));
  EXPECT_EQ(kMap.place_of(350), (SubfileMap::Place{0, 150, 50}));
}

TEST(SubfileMap, GoesBackToTheLogicalOffset) {
  for (std::uint64_t offset = 0; offset < 1000; ++offset) {
    const auto place = kMap.place_of(offset);
    EXPECT_EQ(kMap.offset_of(place.file, place.offset), offset);
  }
}

TEST(SubfileMap, SizesOfPartsAddUpToTheWhole) {
  for (std::uint64_t size = 0; size < 1000; ++size) {
    std::uint64_t sum = 0, whole = 0;
    for (std::uint32_t file = 0; file < 3; ++file) {
      sum += kMap.part_size(file, size);
      whole = std::max(whole, kMap.whole_size(file, kMap.part_size(file, size)));
    }
    EXPECT_EQ(sum, size);
    EXPECT_EQ(whole, size);
  }
}

TEST(SubfileMap, HasATextThatReadsBack) {
  EXPECT_EQ(kMap.text(), "pario subfiles 1\nfiles 3\nunit 100\nsize 00000000000000000000\n");
  EXPECT_EQ(SubfileMap::parse(kMap.text()), kMap);
}

TEST(SubfileMap, HasATextOfOneLengthForAllSizes) {
  const SubfileMap largest{100, 3, std::numeric_limits<std::uint64_t>::max()};
  EXPECT_EQ(largest.text(), "pario subfiles 1\nfiles 3\nunit 100\nsize 18446744073709551615\n");
  EXPECT_EQ(largest.text().size(), kMap.text().size());
  EXPECT_EQ(SubfileMap::parse(largest.text()), largest);
}

TEST(SubfileMap, NeedsNoSize) {
  EXPECT_EQ(SubfileMap::parse("pario subfiles 1\nfiles 3\nunit 100\n"), kMap);
}

TEST(SubfileMap, OtherTextsAreNone) {
  for (const char* text :
       {"", "pario subfiles 2\nfiles 3\nunit 100\n", "pario subfiles 1\nfiles 0\nunit 100\n",
        "pario subfiles 1\nfiles 3\n", "pario subfiles 1\nfiles 3\nunit 100",
        "pario subfiles 1\nfiles 99999999999\nunit 100\n"})
    EXPECT_EQ(SubfileMap::parse(text), std::nullopt) << text;
}

}  // namespace
}  // namespace pario::layout
