// Every way transfers every piece, sequentially or at random, and counts wrong pieces.
#include "instruments/ways/ways.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <numeric>
#include <vector>

#include "directory.hpp"
#include "instruments/ways/places.hpp"

namespace pario::ways {
namespace {

constexpr std::uint64_t kSize = 1 << 20, kPiece = 4096;

struct Named {
  const char* name;
  Way way;
};
const Named kWays[] = {{"read", {.call = Call::read}},
                       {"pread", {.call = Call::pread, .advised = true}},
                       {"readv", {.call = Call::readv, .at_a_time = 4}},
                       {"stdio", {.call = Call::stdio}},
                       {"stdio_buffered", {.call = Call::stdio, .buffer = 1 << 16}},
                       {"mmap", {.call = Call::mmap}},
                       {"mmap_advised", {.call = Call::mmap, .advised = true}},
                       {"uring", {.call = Call::uring, .at_a_time = 8}},
                       {"direct", {.call = Call::pread, .direct = true}},
                       {"direct_uring", {.call = Call::uring, .at_a_time = 32, .direct = true}}};

class Ways : public testing::TestWithParam<Named> {
 protected:
  /// Fills the file with words that are their own offset, plus `shift`.
  void fill(std::uint64_t shift = 0) const {
    std::vector<std::uint64_t> words(kSize / 8);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = i * 8 + shift;
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(words.data()), kSize);
  }
  /// Counts the pieces of the file that do not begin with their offset.
  std::uint64_t count_wrong_pieces() const {
    std::ifstream file(path, std::ios::binary);
    std::uint64_t count = 0;
    for (std::uint64_t place = 0; place < kSize; place += kPiece) {
      std::uint64_t found = 0;
      file.seekg(static_cast<std::streamoff>(place));
      file.read(reinterpret_cast<char*>(&found), sizeof found);
      count += found != place ? 1 : 0;
    }
    return count;
  }
  /// Returns nothing if the kernel or the file system does not support the way.

  std::optional<Timing> move(Work work) const {
    work.piece = kPiece, work.seconds = 3600;
    const auto taken = time_way(path, GetParam().way, work);
    if (taken.ok()) return *taken;
    const int number = taken.error().number;
    EXPECT_TRUE(number == ENOSYS || number == EPERM || number == EINVAL || number == EOPNOTSUPP)
        << taken.error().text();
    return {};
  }

  const Directory directory;
  const std::string path = directory / "file";
};

TEST_P(Ways, ReadEachPieceFromItsPlace) {
  fill();
  for (const bool random : {false, true}) {
    const auto taken = move({.random = random});
    if (!taken) GTEST_SKIP() << "not supported here";
    EXPECT_EQ(taken->bytes, kSize);
    EXPECT_EQ(taken->wrong, 0u);
    EXPECT_GT(taken->seconds, 0);
  }
}

TEST_P(Ways, CountWrongPieces) {
  fill(1);
  const auto taken = move({});
  if (!taken) GTEST_SKIP() << "not supported here";
  EXPECT_EQ(taken->wrong, kSize / kPiece);
}

TEST_P(Ways, WriteEachPieceToItsPlace) {
  for (const bool random : {false, true}) {
    fill(1);
    const auto taken = move({.writes = true, .random = random, .synced = random});
    if (!taken) GTEST_SKIP() << "not supported here";
    EXPECT_EQ(taken->bytes, kSize);
    EXPECT_EQ(taken->wrong, 0u);
    EXPECT_EQ(count_wrong_pieces(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Ways, testing::ValuesIn(kWays),
                         [](const auto& named) { return named.param.name; });

TEST(WaysErrors, NameTheFile) {
  const auto taken = time_way("/nonexistent/file", {}, {});
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().number, ENOENT);
  EXPECT_EQ(taken.error().path, "/nonexistent/file");
}

TEST(Places, AreReturnedOnceEachInOrderOrNot) {
  for (const bool random : {false, true}) {
    Places places(10 * kPiece + 1, kPiece, random);
    places.start(3600);
    std::vector<std::uint64_t> found;
    while (const auto place = places.next()) found.push_back(*place);
    EXPECT_EQ(std::ranges::is_sorted(found), !random);
    std::ranges::sort(found);
    for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(found.at(i), i * kPiece);
    EXPECT_EQ(found.size(), 10u);
  }
}

TEST(Places, OfTinyPiecesAreAllOverTheLargestFiles) {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 44, kTiny = 512, kTold = 1 << 20;
  Places places(kLarge, kTiny, true);
  places.start(3600);
  std::vector<std::uint64_t> found;
  while (const auto place = places.next()) found.push_back(*place);
  ASSERT_EQ(found.size(), kTold);
  EXPECT_FALSE(std::ranges::is_sorted(found));
  std::ranges::sort(found);
  EXPECT_TRUE(std::ranges::none_of(found, [](std::uint64_t place) { return place % kTiny; }));
  for (std::uint64_t& place : found) place /= kLarge / kTold;
  std::vector<std::uint64_t> parts(kTold);
  std::iota(parts.begin(), parts.end(), 0);
  EXPECT_TRUE(found == parts);  // one in each part, and so all different
}

TEST(Places, EndWithTheTime) {
  Places places(std::uint64_t{1} << 40, 1 << 20, false);
  places.start(0);
  EXPECT_TRUE(places.next());
  EXPECT_FALSE(places.next());
}

}  // namespace
}  // namespace pario::ways
