// Directories that get their names when they are whole: one process at a time makes them.
#include "archive/aside.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "archive_support.hpp"

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

TEST_F(AsideTest, WhatIsMadeHasItsNameAtTheEnd) {
  auto aside = Aside::make(place_ / "out", 0700);
  ASSERT_TRUE(aside.ok());
  EXPECT_EQ(fs::status(aside->path()).permissions() & fs::perms::mask, fs::perms::owner_all);
  EXPECT_FALSE(Aside::make(place_ / "out").ok());
  EXPECT_TRUE(aside->finish().ok());
  EXPECT_TRUE(fs::is_directory(place_ / "out"));
  EXPECT_EQ(Aside::make(place_ / "out").error().number, EEXIST);
}

}  // namespace
}  // namespace pario::archive
