// Files and directories that are published when they are complete.
#include "core/file/publication.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "directory.hpp"
#include "read_file.hpp"

namespace pario::file {
namespace {

namespace fs = std::filesystem;
using Existing = Publication::Existing;
using Names = std::vector<std::string>;

/// A number of another host.
std::uint64_t foreign_number() { return part_number(0) ^ std::uint64_t{1} << 40; }

class PublicationTest : public testing::Test {
 protected:
  void make(const std::string& name, const std::string& bytes) const {
    std::ofstream(place_ / name) << bytes;
  }
  Names entries() const {
    Names names;
    for (const auto& entry : fs::directory_iterator(place_))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }
  static std::string name_of(const std::string& path) { return fs::path(path).filename(); }
  static void write(const Publication& publication, const std::string& bytes) {
    ASSERT_EQ(::write(publication.descriptor(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }

  Directory directory_;
  fs::path place_ = directory_.path();
  const std::string target_ = place_ / "out";
};

TEST_F(PublicationTest, APartHasTheNameOfItsTargetTheHostAndASlot) {
  char host[9];
  std::snprintf(host, sizeof host, "%08x", host_mark());
  EXPECT_EQ(part_path("a/out", part_number(10)),
            "a/.out." + std::string(host) + "0000000a.pario-part");
  EXPECT_TRUE(is_own_part(name_of(part_path("a/out", random_part_number())), "out"));
  EXPECT_FALSE(is_own_part(name_of(part_path("a/out", foreign_number())), "out"));
  EXPECT_FALSE(is_own_part(name_of(part_path("a/other", part_number(0))), "out"));
  EXPECT_FALSE(is_own_part("out", "out"));
}

TEST_F(PublicationTest, ATargetWithTheLongestNameIsPublished) {
  const std::string name(255, 'o');
  auto one = Publication::of_file(place_ / name);
  ASSERT_TRUE(one.ok()) << one.error().text();
  EXPECT_TRUE(is_own_part(name_of(one->part()), name));
  EXPECT_FALSE(is_own_part(name_of(one->part()), std::string(254, 'o')));
  EXPECT_TRUE(one->publish(Existing::keep).ok());
  EXPECT_EQ(entries(), Names{name});
}

TEST_F(PublicationTest, AFileReplacesAnotherWhenItIsPublished) {
  for (const bool nameless : {false, true}) {
    make("out", "before");
    auto one = Publication::of_file(target_, {.nameless = nameless});
    ASSERT_TRUE(one.ok()) << one.error().text();
    write(*one, "after");
    EXPECT_EQ(read_file(target_), "before");
    EXPECT_EQ(one->publish(Existing::keep).error().number, EEXIST);
    EXPECT_EQ(read_file(target_), "before");
    EXPECT_TRUE(one->publish(Existing::replace).ok());
    EXPECT_EQ(read_file(target_), "after");
    EXPECT_EQ(entries(), Names{"out"});
  }
}

TEST_F(PublicationTest, AFileThatIsNotPublishedIsRemoved) {
  make("out", "before");
  for (const bool nameless : {false, true}) {
    const auto one = Publication::of_file(target_, {.nameless = nameless});
    ASSERT_TRUE(one.ok());
  }
  EXPECT_EQ(entries(), Names{"out"});
  EXPECT_EQ(read_file(target_), "before");
}

TEST_F(PublicationTest, PartsThatAreInUseStayAndStaleOnesGo) {
  auto first = Publication::of_file(target_);
  auto second = Publication::of_file(target_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->part(), second->part());
  EXPECT_EQ(Publication::of_file(target_, {.number = part_number(0)}).error().number, EEXIST);
  for (const auto slot : {2U, 3U}) make(name_of(part_path(target_, part_number(slot))), "stale");
  const auto third = Publication::of_file(target_);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->part(), part_path(target_, part_number(2)));
  EXPECT_EQ(entries().size(), 3U);
}

TEST_F(PublicationTest, TheStalePartsOfOneTargetAreFoundInItsDirectory) {
  const auto used = Publication::of_file(target_);
  ASSERT_TRUE(used.ok());
  const std::string foreign = name_of(part_path(target_, foreign_number()));
  const std::string other = name_of(part_path(place_ / "other", part_number(0)));
  for (const std::string& name : {foreign, other}) make(name, "of others");
  make(name_of(part_path(target_, random_part_number())), "stale");
  fs::create_symlink(other, part_path(target_, part_number(9)));
  remove_stale_parts(place_, [](std::string_view name) { return is_own_part(name, "out"); });
  Names left = {name_of(used->part()), foreign, other};
  std::ranges::sort(left);
  EXPECT_EQ(entries(), left);
}

TEST_F(PublicationTest, ADirectoryThatBeganIsMadeByOneOfMany) {
  constexpr int kMany = 4;
  for (int round = 0; round < 100; ++round) {
    std::vector<std::optional<Publication>> made(kMany);
    std::barrier all(kMany);
    std::vector<std::jthread> threads;
    for (auto& mine : made)
      threads.emplace_back([&] {
        all.arrive_and_wait();
        if (auto one = Publication::of_directory(target_); one.ok()) mine.emplace(std::move(*one));
      });
    threads.clear();
    const auto has = [](const auto& one) { return one.has_value(); };
    ASSERT_EQ(std::ranges::count_if(made, has), 1);
    struct stat ours{}, there{};
    const Publication& winner = **std::ranges::find_if(made, has);
    ASSERT_EQ(::fstat(winner.descriptor(), &ours), 0);
    ASSERT_EQ(::stat(winner.part().c_str(), &there), 0);
    ASSERT_EQ(ours.st_ino, there.st_ino);
  }
}

TEST_F(PublicationTest, FilesOfManyThreadsHaveNamesOfTheirOwn) {
  constexpr int kMany = 4;
  for (int round = 0; round < 100; ++round) {
    std::barrier all(kMany);
    std::vector<std::optional<Publication>> made(kMany);
    std::vector<std::jthread> threads;
    for (auto& mine : made)
      threads.emplace_back([&] {
        all.arrive_and_wait();
        if (auto one = Publication::of_file(target_); one.ok()) mine.emplace(std::move(*one));
      });
    threads.clear();
    for (const auto& one : made) {
      ASSERT_TRUE(one.has_value());
      struct stat ours{}, there{};
      ASSERT_EQ(::fstat(one->descriptor(), &ours), 0);
      ASSERT_EQ(::stat(one->part().c_str(), &there), 0);
      ASSERT_EQ(ours.st_ino, there.st_ino);
    }
  }
}

TEST_F(PublicationTest, ALinkInTheWayIsRemovedAndNotFollowed) {
  const fs::path elsewhere = place_ / "elsewhere";
  fs::create_directory(elsewhere);
  make("elsewhere/file", "precious");
  for (const fs::path& to : {elsewhere, elsewhere / "missing", elsewhere / "file"}) {
    fs::create_symlink(to, part_path(target_, part_number(0)));
    {
      const auto directory = Publication::of_directory(target_);
      ASSERT_TRUE(directory.ok()) << directory.error().number;
      EXPECT_FALSE(fs::is_symlink(fs::symlink_status(directory->part())));
    }
    fs::create_symlink(to, part_path(target_, part_number(0)));
    const auto file = Publication::of_file(target_);
    ASSERT_TRUE(file.ok()) << file.error().number;
    EXPECT_FALSE(fs::is_symlink(fs::symlink_status(file->part())));
    write(*file, "ours");
    EXPECT_EQ(read_file(elsewhere / "file"), "precious");
    EXPECT_FALSE(fs::exists(elsewhere / "missing"));
  }
}

TEST_F(PublicationTest, ADirectoryHasItsNameWhenItIsPublished) {
  auto one = Publication::of_directory(target_, {.mode = 0700});
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(fs::status(one->part()).permissions() & fs::perms::mask, fs::perms::owner_all);
  EXPECT_EQ(Publication::of_directory(target_).error().number, EBUSY);
  EXPECT_TRUE(one->publish(Existing::keep).ok());
  EXPECT_TRUE(fs::is_directory(target_));
  EXPECT_EQ(Publication::of_directory(target_).error().number, EEXIST);
}

TEST_F(PublicationTest, ManyMakersComeAndGoWithoutErrors) {
  const Publication::DirectoryOptions options{.exclusive = false, .temporary = true};
  std::atomic<int> errors = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        for (int round = 0; round < 500; ++round)
          if (!Publication::of_directory(target_, options).ok()) ++errors;
      });
  }
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(entries(), Names{});
}

TEST_F(PublicationTest, SeveralMakersHaveDirectoriesOfTheirOwn) {
  fs::create_directory(target_);
  const Publication::DirectoryOptions shared{.exclusive = false, .temporary = true};
  fs::create_directory(part_path(target_, part_number(2)));  // of a killed process
  {
    const auto one = Publication::of_directory(target_, shared);
    const auto other = Publication::of_directory(target_, shared);
    ASSERT_TRUE(one.ok() && other.ok());
    EXPECT_NE(one->part(), other->part());
    EXPECT_EQ(Publication::of_directory(target_, {.temporary = true}).error().number, EBUSY);
  }
  EXPECT_EQ(entries(), Names{"out"});
}

TEST_F(PublicationTest, ADirectoryThatAKilledProcessLeftIsRemovedWithItsReadOnlyDirectories) {
  const fs::path within = fs::path(part_path(target_, part_number(0))) / "within";
  fs::create_directories(within);
  std::ofstream(within / "file") << "half";
  fs::permissions(within, fs::perms::none);
  {
    const auto one = Publication::of_directory(target_);
    ASSERT_TRUE(one.ok()) << one.error().text();
    EXPECT_TRUE(fs::is_empty(one->part()));
  }
  EXPECT_EQ(entries(), Names{});
}

TEST_F(PublicationTest, APartOfAnotherHostStaysAndTheFirstToEndHasTheName) {
  auto one = Publication::of_directory(target_);
  ASSERT_TRUE(one.ok());
  const std::string foreign = part_path(target_, foreign_number());
  fs::create_directories(fs::path(foreign) / "within");
  fs::create_directory(target_);  // by that host
  fs::create_directory(place_ / "out" / "index");
  EXPECT_FALSE(one->publish(Existing::keep).ok());
  {
    const Publication gone = std::move(*one);
  }
  EXPECT_TRUE(fs::exists(fs::path(foreign) / "within"));
  EXPECT_TRUE(fs::exists(place_ / "out" / "index"));
  EXPECT_EQ(std::distance(fs::directory_iterator(place_), {}), 2);
}

}  // namespace
}  // namespace pario::file
