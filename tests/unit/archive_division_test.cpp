#include "data/archive/division.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <numeric>

namespace pario::archive {
namespace {

Entry file(std::uint64_t size) {
  Entry entry{.mode = S_IFREG | 0644, .size = size};
  if (size > 0) entry.data = {{0, size}};
  return entry;
}

std::map<std::uint32_t, std::uint64_t> bytes_of_shards(const Division& division) {
  std::map<std::uint32_t, std::uint64_t> out;
  for (const FramePlan& piece : division.pieces) out[piece.shard] += piece.bytes;
  return out;
}

TEST(ArchiveDivision, ShardsAreOfEvenSize) {
  const std::vector<Entry> entries(10'000, file(4096));
  const Division division = divide(entries, 4, 0);
  EXPECT_EQ(division.shards, 4U);
  for (const auto& [shard, bytes] : bytes_of_shards(division))
    EXPECT_NEAR(static_cast<double>(bytes), 10'240'000, 8192);
}

TEST(ArchiveDivision, PiecesCoverAllMembersInOrder) {
  std::vector<Entry> entries;
  for (std::uint64_t i = 0; i < 3000; ++i)
    entries.push_back(file(i % 100 == 0 ? 3 * kLongFrame + i : i));
  const Division division = divide(entries, 0, 50 << 20);
  std::size_t next = 0;
  std::uint64_t at = 0;
  for (const FramePlan& piece : division.pieces) {
    EXPECT_EQ(piece.first, next);
    EXPECT_EQ(piece.part.begin, piece.whole() ? 0 : at);
    at = piece.part.end;
    if (piece.ends(entries[piece.first].size)) next = piece.last;
  }
  EXPECT_EQ(next, entries.size());
}

TEST(ArchiveDivision, MoreShardsThanMembersAreNotMade) {
  EXPECT_EQ(divide({file(1), file(1)}, 10, 0).shards, 2U);
}

TEST(ArchiveDivision, LinksAndDirectoriesComeLastInFramesOfTheirOwn) {
  std::vector<Entry> entries = {
      {.name = ".", .mode = S_IFDIR}, {.name = "a", .mode = S_IFDIR}, file(1), file(1)};
  entries[2].name = "a/b";
  entries[3].name = "a/c";
  entries[3].linked = true;
  arrange(entries);
  std::string names;
  for (const Entry& entry : entries) names += entry.name + " ";
  EXPECT_EQ(names, "a/b a/c a . ");
  const Division division = divide(entries, 1, 0);
  ASSERT_EQ(division.pieces.size(), 2U);
  EXPECT_EQ(division.pieces[1].first, 1U);
}

}  // namespace
}  // namespace pario::archive
