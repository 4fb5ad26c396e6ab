#include "data/archive/header.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace pario::archive {
namespace {

Header read_back(const Header& header) {
  const std::string text = text_of(header);
  Header read;
  EXPECT_EQ(parse(text, read), text.size());
  return read;
}

Header plain() {
  Header header;
  header.name = "a/b";
  header.mode = 0640;
  header.user = 7;
  header.modified = 5'000'000'000;
  header.stored = header.size = 3;
  return header;
}

TEST(ArchiveHeader, PlainMembersTakeOneBlock) {
  EXPECT_EQ(text_of(plain()).size(), kBlock);
  const Header read = read_back(plain());
  EXPECT_EQ(read.name, "a/b");
  EXPECT_EQ(read.mode, 0640U);
  EXPECT_EQ(read.user, 7U);
  EXPECT_EQ(read.modified, 5'000'000'000);
  EXPECT_EQ(read.stored, 3U);
}

TEST(ArchiveHeader, WhatABlockHasNoRoomForSurvives) {
  Header header = plain();
  header.name = std::string(250, 'n') + "\xff\n";
  header.target = std::string(300, 't');
  header.type = Type::symbolic_link;
  header.user = 1ULL << 31;
  header.stored = header.size = 1ULL << 40;
  header.modified = -1'500'000'000;
  header.attributes = {{"user.note", std::string("\0=\n1", 4)}, {"user.a=b%3D%", "2"}};
  const Header read = read_back(header);
  EXPECT_EQ(read.name, header.name);
  EXPECT_EQ(read.target, header.target);
  EXPECT_EQ(read.user, header.user);
  EXPECT_EQ(read.stored, header.stored);
  EXPECT_EQ(read.modified, header.modified);
  EXPECT_EQ(read.attributes, header.attributes);
}

TEST(ArchiveHeader, LargeFilesWithHolesKeepTheirSize) {
  Header header = plain();
  header.sparse = true;
  header.stored = 9ULL << 30;  // more than the block can hold
  header.size = 20ULL << 30;
  const Header read = read_back(header);
  EXPECT_EQ(read.stored, header.stored);
  EXPECT_EQ(read.size, header.size);
}

TEST(ArchiveHeader, DamageIsSeen) {
  std::string text = text_of(plain());
  text[0] ^= 1;
  Header read;
  EXPECT_EQ(parse(text, read), 0U);
}

TEST(ArchiveHeader, TimesThatNobodyCanNameAreTheLatestThereAre) {
  Header header = plain();
  std::string text = text_of(header);
  text.replace(136, 12, "777777777777");  // seconds, octal
  text.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char letter : text) sum += static_cast<unsigned char>(letter);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  text.replace(148, 7, std::string(digits, 7));
  Header read;
  ASSERT_EQ(parse(text, read), text.size());
  EXPECT_GT(read.modified, 0);
}

TEST(ArchiveHeader, HolesAreReadBack) {
  const std::vector<base::Extent> data = {{0, 10}, {4096, 8192}};
  const std::string text = map_of(data, 10'000);
  EXPECT_EQ(text.size(), kBlock);
  EXPECT_TRUE(text.starts_with("3\n0\n10\n4096\n4096\n10000\n0\n"));
  std::vector<base::Extent> read;
  EXPECT_EQ(parse_map(text, read), kBlock);
  EXPECT_EQ(read, data);
}

}  // namespace
}  // namespace pario::archive
