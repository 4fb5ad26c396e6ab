// Archives that pario pack would not write: the files that unpack creates from them, and that it
// creates nothing outside of its output.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "archive_support.hpp"
#include "data/archive/archive.hpp"
#include "data/archive/frames.hpp"
#include "data/archive/header.hpp"
#include "data/archive/index.hpp"
#include "data/archive/losses.hpp"
#include "data/archive/maker.hpp"
#include "data/archive/place.hpp"
#include "read_file.hpp"

namespace pario::archive {
namespace {

namespace fs = std::filesystem;

struct Member {
  Header header;
  std::string bytes = {};
};

Member file(const std::string& name, const std::string& bytes) {
  return {{.name = name,
           .mode = 0644,
           .user = ::geteuid(),
           .group = ::getegid(),
           .stored = bytes.size(),
           .size = bytes.size()},
          bytes};
}

Member link(const std::string& name, const std::string& target, Type type) {
  return {{.name = name,
           .target = target,
           .type = type,
           .mode = 0777,
           .user = ::geteuid(),
           .group = ::getegid()}};
}

class UnpackTest : public Scratch {
 protected:
  UnpackTest() { fs::create_directory(place_ / "outside"); }

  /// Writes an archive of one shard with frames of `frame_size` bytes. `more`: bytes by which the
  /// index overstates the size of each member.
  void make(const std::vector<Member>& members, std::size_t frame_size = 1 << 20,
            std::uint64_t more = 0) const {
    fs::remove_all(place_ / "pack");
    fs::create_directory(place_ / "pack");
    std::string tar, names;
    std::vector<Row> rows;
    for (const auto& [header, bytes] : members) {
      const std::string text = text_of(header);
      Row row = {.name = names.size(),
                 .offset = tar.size(),
                 .stored = bytes.size() + more,
                 .size = header.size,
                 .type = header.type};
      row.name_size = static_cast<std::uint32_t>(header.name.size());
      row.header = static_cast<std::uint32_t>(text.size());
      rows.push_back(row);
      names += header.name;
      tar += text + bytes;
      tar.resize(base::round_up(tar.size(), kBlock));
    }
    write_shard(tar, frame_size);
    ASSERT_TRUE(write_index(place_ / "pack" / kIndex, rows, names, 1).ok());
  }

  base::Result<Unpacking> unpack(bool strict = false) const {
    const auto archive = Archive::open(place_ / "pack");
    return archive::unpack(
        *archive, {.output = place_ / "back", .members = {}, .threads = 3, .strict = strict}, {});
  }

  void expect_refusal(const std::vector<Member>& members) const {
    make(members);
    EXPECT_FALSE(unpack().ok());
    EXPECT_FALSE(fs::exists(place_ / "back"));
    EXPECT_TRUE(fs::is_empty(place_ / "outside"));
    EXPECT_EQ(std::distance(fs::directory_iterator(place_), {}), 2);  // "pack" and "outside"
  }

 private:
  void write_shard(std::string_view tar, std::size_t frame_size) const {
    Compressor compressor(1);
    std::ofstream out(place_ / "pack" / shard_name(0), std::ios::binary);
    const auto put = [&](const Bytes& bytes) {
      out.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    };
    std::vector<FrameSize> frames;
    for (; !tar.empty(); tar.remove_prefix(std::min(frame_size, tar.size()))) {
      const std::string_view plain = tar.substr(0, frame_size);
      const auto frame = compressor.frame(std::as_bytes(std::span(plain)));
      put(*frame);
      frames.push_back(
          {static_cast<std::uint32_t>(frame->size()), static_cast<std::uint32_t>(plain.size())});
    }
    put(table_of(frames));
  }
};

std::string read(const fs::path& path) { return read_file(path.string()); }

TEST_F(UnpackTest, NamesThatLeadOutAreRefused) {
  const std::vector<std::string> names = {"../outside/x", "a/../../outside/x", "..",
                                          place_ / "outside/x"};
  for (const std::string& name : names) expect_refusal({file(name, "x")});
}

TEST_F(UnpackTest, NothingIsPutBehindLinksOfTheArchive) {
  const std::string outside = place_ / "outside";
  expect_refusal({link("d", outside, Type::symbolic_link), file("d/x", "x")});
  expect_refusal({file("d/x", "x"), link("d", outside, Type::symbolic_link)});
  expect_refusal({link("x", outside + "/x", Type::symbolic_link), file("x", "through a link")});
}

TEST_F(UnpackTest, HardLinksToWhatIsNotInTheArchiveAreRefused) {
  for (const std::string target : {"../outside", "/etc/hostname", "nowhere"})
    expect_refusal({link("l", target, Type::hard_link)});
  expect_refusal(
      {link("s", place_ / "outside", Type::symbolic_link), link("l", "s/x", Type::hard_link)});
}

TEST_F(UnpackTest, NumbersThatRunOverAreRefused) {
  constexpr std::uint64_t kAlmostAll = std::numeric_limits<std::uint64_t>::max() - 600;
  make({file("a", "1"), file("b", "2")}, 1 << 20, kAlmostAll);
  EXPECT_FALSE(unpack().ok());
  auto archive = Archive::open(place_ / "pack");
  EXPECT_FALSE(archive->read(0).ok());
}

TEST_F(UnpackTest, AMapOfHolesThatLeadsOutOfTheFileIsRefused) {
  for (const char* map :
       {"1\n18446744073709551606\n20\n", "1\n0\n18446744073709551615\n", "1\n30\n20\n"}) {
    std::string bytes = map;
    bytes.resize(kBlock);
    Member member = file("a", bytes + std::string(20, 'x'));
    member.header.sparse = true;
    member.header.size = 40;
    make({member});
    auto archive = Archive::open(place_ / "pack");
    EXPECT_FALSE(archive->read(0).ok());
    EXPECT_FALSE(unpack().ok());
    EXPECT_FALSE(fs::exists(place_ / "back"));
  }
}

TEST_F(UnpackTest, AMemberWithoutAHeaderBehindTheEndIsRefused) {
  make({file("a", "1")});
  const Row nowhere = {.offset = 2 * kBlock, .name_size = 1};
  ASSERT_EQ(::unlink((place_ / "pack" / kIndex).c_str()), 0);
  ASSERT_TRUE(write_index(place_ / "pack" / kIndex, {nowhere}, "a", 1).ok());
  const auto done = unpack();
  ASSERT_FALSE(done.ok());
  EXPECT_NE(done.error().text().find(
                "\"a\" is said to have 0 + 0 bytes at 1024, behind the end of 00000.tar.zst"),
            std::string::npos);
}

TEST_F(UnpackTest, AMemberThatIsLargerThanTheIndexSaysIsRefused) {
  Member member = file("a", "1");
  member.header.stored = kBlock;  // and the next member, too
  make({member, file("b", "2")});
  EXPECT_FALSE(unpack().ok());
  EXPECT_FALSE(fs::exists(place_ / "back"));
}

TEST_F(UnpackTest, ADirectoryHasThePermissionsThatItHad) {
  for (const mode_t mode : {0700U, 0750U, 0777U, 0500U}) {
    Member directory = file(".", ""), within = file("d", "");
    directory.header.type = within.header.type = Type::directory;
    directory.header.mode = within.header.mode = mode;
    make({within, directory});
    const auto done = unpack();
    ASSERT_TRUE(done.ok()) << done.error().text();
    for (const char* name : {".", "d"})
      EXPECT_EQ(fs::status(place_ / "back" / name).permissions() & fs::perms::mask,
                static_cast<fs::perms>(mode))
          << name;
    fs::permissions(place_ / "back", fs::perms::owner_all);
    fs::remove_all(place_ / "back");
  }
}

TEST_F(UnpackTest, WhatAFileSystemCannotHaveIsCounted) {
  std::vector<Member> members = {file("a", "1"), file("b", "2"), file("c", "3")};
  members[0].header.attributes = members[1].header.attributes = {{"nosuchspace.x", "1"}};
  make(members);
  const auto done = unpack();
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_EQ(read(place_ / "back" / "a") + read(place_ / "back" / "b") + read(place_ / "back" / "c"),
            "123");
  ASSERT_EQ(done->losses.size(), 1U);
  EXPECT_EQ(done->losses.at(Missing::attributes).members, 2U);
  EXPECT_NE(done->losses.at(Missing::attributes).first.find("nosuchspace.x"), std::string::npos);
}

TEST_F(UnpackTest, StrictLosesNothing) {
  Member member = file("a", "1");
  member.header.attributes = {{"nosuchspace.x", "1"}};
  make({member});
  const auto done = unpack(true);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().number, ENOTSUP);
  EXPECT_FALSE(fs::exists(place_ / "back"));
}

TEST_F(UnpackTest, AFileOfManyFramesIsPutTogether) {
  std::string bytes(9'000'001, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<char>((i * 2654435761U) >> 13);
  Member large = file("large", bytes);
  large.header.mode = 0400;
  large.header.modified = 1'600'000'000'123'456'789;
  make({file("before", "1"), large, file("behind", "2")}, 300'000);
  const auto done = unpack();
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_TRUE(read(place_ / "back" / "large") == bytes);
  EXPECT_EQ(read(place_ / "back" / "before") + read(place_ / "back" / "behind"), "12");
  struct stat facts{};
  ASSERT_EQ(::stat((place_ / "back" / "large").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0400U);
  EXPECT_EQ(facts.st_mtim.tv_nsec, 123'456'789);
}

TEST_F(UnpackTest, LinksToWhatCouldNotBeMadeAreCountedAndTheRestIsThere) {
  const std::string name(300, 'n');
  make({file("a", "1"), file(name, "2"), link("l1", name, Type::hard_link),
        link("l2", name, Type::hard_link), link("l3", "a", Type::hard_link), file("z", "3")});
  const auto done = unpack();
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_EQ(
      read(place_ / "back" / "a") + read(place_ / "back" / "l3") + read(place_ / "back" / "z"),
      "113");
  ASSERT_EQ(done->losses.size(), 2U);
  EXPECT_EQ(done->losses.at(Missing::place).members, 1U);
  EXPECT_NE(done->losses.at(Missing::place).first.find(name), std::string::npos);
  EXPECT_EQ(done->losses.at(Missing::link).members, 2U);
  EXPECT_NE(done->losses.at(Missing::link).first.find("l1"), std::string::npos);
  EXPECT_EQ(unpack(true).error().number, EEXIST);
  fs::remove_all(place_ / "back");
  EXPECT_EQ(unpack(true).error().number, ENAMETOOLONG);
}

TEST_F(UnpackTest, WhatIsInADirectoryThatCannotBeMadeIsCounted) {
  const std::string bytes(9'000'000, 'x'), name(300, 'n');
  Member directory = file(name, "");
  directory.header.type = Type::directory;
  make({file("a", "1"), file(name + "/large", bytes), file(name + "/small", "2"),
        link(name + "/link", "a", Type::symbolic_link), link(name + "/other", "a", Type::hard_link),
        directory},
       300'000);
  const auto done = unpack();
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_EQ(std::distance(fs::directory_iterator(place_ / "back"), {}), 1);
  EXPECT_EQ(done->losses.at(Missing::place).members, 3U);
  EXPECT_EQ(done->losses.at(Missing::symbolic_link).members, 1U);
  EXPECT_EQ(done->losses.at(Missing::link).members, 1U);
}

TEST_F(UnpackTest, PathsMayBeLongerThanACallTakes) {
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += std::string(150, 'd') + "/";
  Member directory = file(deep.substr(0, deep.size() - 1), "");
  directory.header.type = Type::directory;
  directory.header.mode = 0700;
  directory.header.modified = 1'600'000'000'000'000'000;
  make({file(deep + "a", "1"), link(deep + "s", "a", Type::symbolic_link),
        link(deep + "p", "", Type::pipe), link(deep + "l", deep + "a", Type::hard_link),
        directory});
  const auto done = unpack(true);
  ASSERT_TRUE(done.ok()) << done.error().text();
  const int root = ::open((place_ / "back").c_str(), O_RDONLY | O_DIRECTORY);
  const int file = open_beneath(root, deep + "l", O_RDONLY),
            within = open_beneath(root, directory.header.name, O_RDONLY);
  struct stat facts{};
  ASSERT_EQ(::fstat(file, &facts), 0);
  EXPECT_EQ(facts.st_nlink, 2U);
  EXPECT_EQ(facts.st_size, 1);
  ASSERT_EQ(::fstat(within, &facts), 0);
  EXPECT_EQ(facts.st_mtim.tv_sec, 1'600'000'000);
  for (const int descriptor : {root, file, within}) ::close(descriptor);
}

TEST_F(UnpackTest, ALongNameWithTwoSlashesInARowLeadsNowhereElse) {
  std::string name;
  while (name.size() + 200 < kLongestName) name += std::string(150, 'd') + "/";
  // the longest name of a system call: the rest is a separate part
  name.append(kLongestName - name.size(), 'e');
  name += "/" + (place_ / "outside/x").string();
  make({file(name, "1")});
  const auto done = unpack(true);
  EXPECT_TRUE(done.ok()) << done.error().text();
  EXPECT_TRUE(fs::is_empty(place_ / "outside"));
  const int root = ::open((place_ / "back").c_str(), O_RDONLY | O_DIRECTORY),
            file = open_beneath(root, name, O_RDONLY);
  EXPECT_GE(file, 0);
  for (const int descriptor : {root, file}) ::close(descriptor);
}

TEST_F(UnpackTest, ALongNameThatEndsInSlashesIsThatDirectory) {
  const fs::path back = place_ / "back";
  fs::create_directory(back);
  const int root = ::open(back.c_str(), O_RDONLY | O_DIRECTORY);
  std::string name;
  while (name.size() + 200 < kLongestName) name += std::string(150, 'd') + "/";
  name.append(kLongestName - name.size(), 'e');
  Losses losses(true);
  ASSERT_TRUE(Maker(back, root, losses).make_directory(name).ok());
  const int plain = open_beneath(root, name, O_RDONLY | O_DIRECTORY),
            slashes = open_beneath(root, name + "//", O_RDONLY | O_DIRECTORY);
  struct stat one{}, other{};
  ASSERT_EQ(::fstat(plain, &one), 0);
  ASSERT_EQ(::fstat(slashes, &other), 0);
  EXPECT_EQ(one.st_ino, other.st_ino);
  for (const int descriptor : {root, plain, slashes}) ::close(descriptor);
}

TEST_F(UnpackTest, ANameOfMoreThanCanBeFollowedIsALoss) {
  std::string endless;
  while (endless.size() <= kLongestWay) endless += std::string(200, 'd') + "/";
  make({file(endless + "a", "1"), file("b", "2")});
  const auto done = unpack(false);
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_TRUE(fs::exists(place_ / "back/b"));
  fs::remove_all(place_ / "back");
  EXPECT_FALSE(unpack(true).ok());
}

TEST_F(UnpackTest, ADirectoryWhoseParentCannotBeWrittenIsNoLoss) {
  const int root = ::open("/sys", O_RDONLY | O_DIRECTORY);  // read-only

  Losses losses(false);
  EXPECT_FALSE(Maker("/sys", root, losses).make_directory("none/such").ok());
  ::close(root);
}

TEST_F(UnpackTest, AGroupThatIsNotTheFilesHasNobodyActForIt) {
  Member tool = file("tool", "1"), directory = file("d", "");
  tool.header.mode = 06755;
  directory.header.type = Type::directory;
  directory.header.mode = 03777;
  if (::geteuid() == 0) GTEST_SKIP() << "root can give files to any group";
  tool.header.group = directory.header.group = ::getegid() + 1;
  make({tool, directory});
  ASSERT_TRUE(unpack().ok());
  EXPECT_EQ(fs::status(place_ / "back" / "tool").permissions() & fs::perms::mask,
            static_cast<fs::perms>(04755));
  EXPECT_EQ(fs::status(place_ / "back" / "d").permissions() & fs::perms::mask,
            static_cast<fs::perms>(01777));
}

TEST_F(UnpackTest, AFileOfSomebodyElseActsForNobody) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can give files to anybody";
  Member member = file("tool", "1");
  member.header.mode = 07755;
  member.header.user = ::geteuid() + 1;
  make({member});
  ASSERT_TRUE(unpack().ok());
  EXPECT_EQ(fs::status(place_ / "back" / "tool").permissions() & fs::perms::mask,
            static_cast<fs::perms>(0755));
}

}  // namespace
}  // namespace pario::archive
