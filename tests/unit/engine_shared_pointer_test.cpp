#include <set>

#include "engine_support.hpp"

namespace pario::engine {
namespace {

TEST(EngineSharedPointer, GivesEveryByteToOneRank) {
  const Directory directory;
  for (const auto& shape : shapes()) {
    std::mutex mutex;
    std::set<std::uint64_t> begins;
    with_file(shape, fresh(directory / "shared"), [&](SharedFile& file, comm::Comm&) {
      for (int i = 0; i < 25; ++i) {
        const auto begin = file.pointer().advance(10);
        ASSERT_TRUE(begin.ok()) << begin.error().text();
        const std::scoped_lock lock(mutex);
        EXPECT_TRUE(begins.insert(*begin).second);
      }
      EXPECT_OK(file.agree(0, {}, "agree"));
      EXPECT_EQ(file.pointer().position().value(),
                250 * static_cast<std::uint64_t>(file.comm().size()));
    });
    EXPECT_EQ(*begins.rbegin(), 250 * shape.size() - 10);
    EXPECT_EQ(directory.entries(), 1u) << "nothing is left beside the file";
  }
}

TEST(EngineSharedPointer, OrdersRanks) {
  const Directory directory;
  for (const auto& shape : shapes())
    with_file(shape, fresh(directory / "ordered"), [&](SharedFile& file, comm::Comm& ranks) {
      EXPECT_OK(file.pointer().seek(1000));
      const auto rank = static_cast<std::uint64_t>(ranks.rank()),
                 size = static_cast<std::uint64_t>(ranks.size());
      const std::uint64_t all = size * (size + 1) / 2;
      EXPECT_EQ(file.pointer().order(rank + 1, "write_ordered").value(),
                1000 + rank * (rank + 1) / 2);
      EXPECT_EQ(file.pointer().order(rank + 1, "write_ordered").value(),
                1000 + all + rank * (rank + 1) / 2);
      EXPECT_EQ(file.pointer().position().value(), 1000 + 2 * all);
    });
}

TEST(EngineSharedPointer, GivesNoByteTwiceIfOneRankMovesItAtOnce) {
  const Directory directory;
  for (const auto& shape : shapes()) {
    std::mutex mutex;
    std::set<std::uint64_t> bytes;
    with_file(shape, fresh(directory / "mixed"), [&](SharedFile& file, comm::Comm& ranks) {
      for (int call = 0; call < 50; ++call) {
        const auto ordered = file.pointer().order(2, "write_ordered");
        ASSERT_TRUE(ordered.ok()) << ordered.error().text();
        const auto own = file.pointer().advance(call % ranks.size() == ranks.rank() ? 1 : 0);
        ASSERT_TRUE(own.ok()) << own.error().text();
        const std::scoped_lock lock(mutex);
        EXPECT_TRUE(bytes.insert(*ordered).second);
        EXPECT_TRUE(bytes.insert(*ordered + 1).second);
        if (call % ranks.size() == ranks.rank()) {
          EXPECT_TRUE(bytes.insert(*own).second);
        }
      }
    });
    EXPECT_EQ(bytes.size(), 100 * shape.size() + 50);
    EXPECT_EQ(*bytes.rbegin(), bytes.size() - 1) << "no byte is left out";
  }
}

TEST(EngineSharedPointer, IsAtTheBeginningOfANewView) {
  const Directory directory;
  for (const auto& shape : shapes())
    with_file(shape, fresh(directory / "view"), [&](SharedFile& file, comm::Comm& ranks) {
      if (ranks.rank() == ranks.size() - 1) EXPECT_OK(file.pointer().advance(10));
      EXPECT_OK(file.begin_view(file.hints(), {}, "set_view"));
      EXPECT_EQ(file.pointer().position().value(), 0U);
      EXPECT_OK(file.agree(0, {}, "agree"));
      const auto all = static_cast<std::uint64_t>(ranks.size());
      EXPECT_OK(file.pointer().order(1, "write_ordered"));
      EXPECT_EQ(file.pointer().position().value(), all);
      EXPECT_OK(file.begin_view(file.hints(), {}, "set_view"));
      EXPECT_EQ(file.pointer().position().value(), 0U);
      EXPECT_OK(file.pointer().seek(7));
      EXPECT_OK(file.begin_view(file.hints(), {}, "set_view"));
      EXPECT_EQ(file.pointer().position().value(), 0U);
    });
}

TEST(EngineSharedPointer, HasNoFileUntilItMoves) {
  const Directory directory;
  with_file(kFour, fresh(directory / "unused"), [&](SharedFile& file, comm::Comm&) {
    EXPECT_OK(file.begin_view(file.hints(), {}, "set_view"));
    EXPECT_EQ(directory.entries(), 1U);
    EXPECT_OK(file.agree(0, {}, "agree"));
    EXPECT_OK(file.pointer().advance(10));
    EXPECT_EQ(directory.entries(), 2U);
    EXPECT_OK(file.agree(0, {}, "agree"));
  });
}

TEST(EngineSharedPointer, MovesToThePositionOfRankZero) {
  const Directory directory;
  for (const auto& shape : shapes())
    with_file(shape, fresh(directory / "seek"), [&](SharedFile& file, comm::Comm& ranks) {
      const auto own = 7 + static_cast<std::uint64_t>(ranks.rank());
      EXPECT_EQ(file.pointer().seek(own).value(), 7U) << "another program may change the end";
      EXPECT_EQ(file.pointer().position().value(), 7U);
    });
}

}  // namespace
}  // namespace pario::engine
