// Directories that get their names when they are whole: one process at a time makes them.
#include "archive/aside.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "archive_support.hpp"
#include "records/records.hpp"

namespace pario::archive {
namespace {

namespace fs = std::filesystem;

using AsideTest = Scratch;

TEST_F(AsideTest, OfManyWhoBeginAtOnceOneMakesIt) {
  constexpr int kMany = 4;
  for (int round = 0; round < 100; ++round) {
    std::vector<std::optional<Aside>> made(kMany);
    std::barrier all(kMany);
    std::vector<std::jthread> threads;
    for (auto& mine : made)
      threads.emplace_back([&] {
        all.arrive_and_wait();
        if (auto aside = Aside::make(place_ / "out"); aside.ok()) mine.emplace(std::move(*aside));
      });
    threads.clear();
    const auto has = [](const auto& one) { return one.has_value(); };
    ASSERT_EQ(std::ranges::count_if(made, has), 1);
    struct stat ours{}, there{};
    const Aside& winner = **std::ranges::find_if(made, has);
    ASSERT_EQ(::fstat(winner.number(), &ours), 0);
    ASSERT_EQ(::stat(winner.path().c_str(), &there), 0);
    ASSERT_EQ(ours.st_ino, there.st_ino);
  }
}

TEST_F(AsideTest, ALinkInTheWayIsRemovedAndNotFollowed) {
  const fs::path elsewhere = place_ / "elsewhere";
  fs::create_directory(elsewhere);
  for (const fs::path& target : {elsewhere, elsewhere / "missing"}) {
    const std::string name = Aside::make(place_ / "out")->path();
    fs::create_symlink(target, name);
    auto aside = Aside::make(place_ / "out");
    ASSERT_TRUE(aside.ok()) << aside.error().number;
    EXPECT_FALSE(fs::is_symlink(fs::symlink_status(aside->path())));
    EXPECT_TRUE(fs::is_empty(elsewhere));
  }
}

TEST_F(AsideTest, WhatIsMadeHasItsNameAtTheEnd) {
  auto aside = Aside::make(place_ / "out", 0700);
  ASSERT_TRUE(aside.ok());
  EXPECT_EQ(fs::status(aside->path()).permissions() & fs::perms::mask, fs::perms::owner_all);
  EXPECT_FALSE(Aside::make(place_ / "out").ok());
  EXPECT_TRUE(aside->finish().ok());
  EXPECT_TRUE(fs::is_directory(place_ / "out"));
  EXPECT_EQ(Aside::make(place_ / "out").error().number, EEXIST);
}

TEST_F(AsideTest, WhatAnotherHostMayStillMakeStaysAndTheFirstToEndHasTheName) {
  auto aside = Aside::make(place_ / "out");
  ASSERT_TRUE(aside.ok());
  EXPECT_NE(aside->path().find(std::to_string(records::host_mark())), std::string::npos);
  fs::create_directories(place_ / ".out.1.part" / "within");
  fs::create_directory(place_ / "out");  // by that host
  fs::create_directory(place_ / "out" / "index");
  EXPECT_FALSE(aside->finish().ok());
  {
    const Aside gone = std::move(*aside);
  }
  EXPECT_TRUE(fs::exists(place_ / ".out.1.part" / "within"));
  EXPECT_TRUE(fs::exists(place_ / "out" / "index"));
  EXPECT_EQ(std::distance(fs::directory_iterator(place_), {}), 2);
}

}  // namespace
}  // namespace pario::archive
