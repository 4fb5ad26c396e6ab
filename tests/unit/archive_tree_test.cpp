// Files of a directory tree are read from it, even if another process replaces parts by links.
#include "data/archive/tree.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "archive_support.hpp"
#include "data/archive/place.hpp"

namespace pario::archive {
namespace {

namespace fs = std::filesystem;

class TreeTest : public Scratch {
 protected:
  TreeTest() {
    fs::create_directories(place_ / "tree" / "d");
    fs::create_directory(place_ / "outside");
    std::ofstream(place_ / "tree" / "d" / "file") << "ours";
    std::ofstream(place_ / "outside" / "file") << "somebody else's";
    root_ = ::open((place_ / "tree").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  ~TreeTest() override { ::close(root_); }

  int root_ = -1;
};

TEST_F(TreeTest, WhatHasANameIsOpened) {
  const int file = open_beneath(root_, "d/file", O_RDONLY),
            itself = open_beneath(root_, ".", O_RDONLY | O_DIRECTORY);
  EXPECT_GE(file, 0);
  EXPECT_GE(itself, 0);
  ::close(file);
  ::close(itself);
  EXPECT_EQ(open_beneath(root_, "missing", O_RDONLY), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(TreeTest, EntriesComeInTheOrderOfTheBytesOfTheirNames) {
  for (const char* name : {"d.txt", "d-", "!", "d/\xff", "d/g"})
    std::ofstream(place_ / "tree" / name) << name;
  records::Meter meter;
  const auto entries = entries_of(place_ / "tree", 3, meter);
  ASSERT_TRUE(entries.ok());
  std::string names;
  for (const Entry& entry : *entries) names += entry.name + " ";
  EXPECT_EQ(names, ". ! d d- d.txt d/file d/g d/\xff ");
  EXPECT_EQ(entries->back().size, 3U);
}

TEST_F(TreeTest, ALinkThatTookThePlaceOfADirectoryLeadsNowhere) {
  if (::syscall(437, -1, nullptr, nullptr, 0) == -1 && (errno == ENOSYS || errno == EPERM))
    GTEST_SKIP() << "no openat2 here";
  fs::remove_all(place_ / "tree" / "d");
  fs::create_directory_symlink(place_ / "outside", place_ / "tree" / "d");
  EXPECT_EQ(open_beneath(root_, "d/file", O_RDONLY), -1);
  EXPECT_EQ(errno, ELOOP);
  EXPECT_EQ(open_beneath(root_, "d", O_RDONLY | O_DIRECTORY), -1);
}

}  // namespace
}  // namespace pario::archive
