// The files of a cache: the least recently used ones are removed.
#include "core/file/cached_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "directory.hpp"

namespace pario::file {
namespace {

/// Makes a file of so many bytes whose last use is `seconds` after 1970.
void make(const std::string& path, std::size_t bytes, time_t seconds) {
  std::ofstream(path) << std::string(bytes, 'x');
  const timespec times[] = {{seconds, 0}, {seconds, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

std::string names_in(const Directory& directory) {
  std::string names;
  for (const char* name : {"a.block", "b.block", "c.block", "d.part"})
    if (::access((directory / name).c_str(), F_OK) == 0) names += name[0];
  return names;
}

class CachedFiles : public testing::Test {
 protected:
  CachedFiles() {
    make(directory / "a.block", 10, 300);
    make(directory / "b.block", 20, 100);
    make(directory / "c.block", 30, 200);
    make(directory / "d.part", 40, 50);
    ::mkdir((directory / "folder.block").c_str(), 0700);
  }
  Directory directory;
};

TEST_F(CachedFiles, AreTheFilesWithTheSuffix) {
  EXPECT_EQ(list_cached_files(directory.path(), ".block").size(), 3U);
  EXPECT_EQ(sum_of_bytes(list_cached_files(directory.path(), ".block")), 60U);
  EXPECT_EQ(list_cached_files(directory.path(), "").size(), 4U);
  EXPECT_TRUE(list_cached_files(directory / "missing", "").empty());
}

TEST_F(CachedFiles, TheLeastRecentlyUsedAreRemovedFirst) {
  const auto remove = [&](std::uint64_t most) {
    return remove_least_recently_used(list_cached_files(directory.path(), ".block"), most);
  };
  EXPECT_EQ(remove(60), 60U);
  EXPECT_EQ(names_in(directory), "abcd");
  EXPECT_EQ(remove(59), 40U);
  EXPECT_EQ(names_in(directory), "acd");
  note_use(directory / "c.block", 0);
  EXPECT_EQ(remove(30), 30U);
  EXPECT_EQ(names_in(directory), "cd") << "c has been used after a";
  EXPECT_EQ(remove(0), 0U);
  EXPECT_EQ(names_in(directory), "d");
}

TEST_F(CachedFiles, ThoseThatCannotBeRemovedCount) {
  const CachedFile file{directory / "a.block", 10, 300}, missing{directory / "missing", 5, 200},
      other_users{directory / "folder.block", 20, 100};
  EXPECT_EQ(remove_least_recently_used({file, missing, other_users}, 10), 20U);
  EXPECT_EQ(names_in(directory), "bcd");
}

TEST_F(CachedFiles, AUseIsNotedOnceInAnInterval) {
  constexpr std::int64_t kForever = INT64_MAX;
  note_use(directory / "a.block", kForever);
  EXPECT_EQ(list_cached_files(directory.path(), "a.block").at(0).used, 300'000'000'000);
  note_use(directory / "a.block", 1'000'000'000);
  EXPECT_FALSE(is_older(list_cached_files(directory.path(), "a.block").at(0).used,
                        std::int64_t{60} * 1'000'000'000));
}

}  // namespace
}  // namespace pario::file
