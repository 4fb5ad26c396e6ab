#include "data/archive/index.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

#include "archive_support.hpp"

namespace pario::archive {
namespace {

using IndexTest = Scratch;

/// Members in the order of pack: files by name, then links, then directories, deep ones first.
TEST_F(IndexTest, RowsThatComeInAnyOrderAreFoundByName) {
  const std::string names = "a/fc/fe/lb/lca.";
  constexpr std::uint32_t kSizes[] = {3, 3, 3, 3, 1, 1, 1};
  std::vector<Row> rows;
  for (std::uint64_t at = 0; const std::uint32_t size : kSizes) {
    rows.push_back({.name = at, .offset = 512 * rows.size(), .name_size = size});
    at += size;
  }
  const std::string path = place_ / kIndex;
  ASSERT_TRUE(write_index(path, rows, names, 1).ok());
  const auto index = Index::open(path);
  ASSERT_TRUE(index.ok());
  std::string order;
  for (std::size_t i = 0; i < index->count(); ++i) order.append(index->name(i)).append(" ");
  EXPECT_EQ(order, ". a a/f b/l c c/f e/l ");
  for (const Row& row : rows) {
    const auto found = index->find(std::string_view(names).substr(row.name, row.name_size));
    ASSERT_TRUE(found);
    EXPECT_EQ(index->row(*found).offset, row.offset);
  }
  EXPECT_TRUE(index->verify().ok());
}

TEST_F(IndexTest, OneThatCannotBeMappedIsAnErrorOfTheSystem) {
  for (const char* name : {"a", "b", "c"})
    std::ofstream(place_ / name);  // some file systems give empty directories no size
  const auto index = Index::open(place_);
  ASSERT_FALSE(index.ok());
  EXPECT_EQ(index.error().number, ENODEV);
  EXPECT_STREQ(index.error().operation, "mmap");
}

}  // namespace
}  // namespace pario::archive
