#include "data/archive/frames.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace pario::archive {
namespace {

/// Writes a shard of three frames with 5, 10 and 15 bytes.
class ArchiveFrames : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/" +
            testing::UnitTest::GetInstance()->current_test_info()->name() + ".zst";
    std::ofstream out(path_, std::ios::binary);
    std::vector<FrameSize> sizes;
    Compressor compressor(3);
    for (const std::uint32_t size : {5U, 10U, 15U}) {
      const Bytes plain(size, static_cast<std::byte>('a' + size));
      const auto frame = compressor.frame(plain);
      ASSERT_TRUE(frame.ok());
      sizes.push_back({static_cast<std::uint32_t>(frame->size()), size});
      put(out, *frame);
    }
    put(out, table_of(sizes));
  }
  void TearDown() override { std::filesystem::remove(path_); }
  static void put(std::ofstream& out, const Bytes& bytes) {
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }
  /// Writes a shard of one frame, with `plain` bytes in its table.
  void write_one(const Bytes& frame, std::uint32_t plain) const {
    std::ofstream out(path_, std::ios::binary);
    put(out, frame);
    put(out, table_of(std::vector<FrameSize>{{static_cast<std::uint32_t>(frame.size()), plain}}));
  }
  base::Status read_first() const {
    const auto shard = Shard::open(path_);
    return shard.ok() ? (*shard)->read_part(0).status() : shard.status();
  }
  void damage(std::streamoff from_end) const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(from_end, std::ios::end);
    file.put('!');
  }
  std::string path_;
};

TEST_F(ArchiveFrames, BytesAcrossFramesAreRead) {
  auto shard = Shard::open(path_);
  ASSERT_TRUE(shard.ok());
  EXPECT_EQ((*shard)->size(), 30U);
  std::string text(4, '\0');
  ASSERT_TRUE((*shard)->read({13, 17}, reinterpret_cast<std::byte*>(text.data())).ok());
  EXPECT_EQ(text, "kkpp");
}

/// The memory of the longer frame is reused.
TEST_F(ArchiveFrames, AFrameBehindALongerOneHasItsOwnBytesAlone) {
  Compressor compressor(3);
  Bytes noise(100'000);
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::byte>(i * i >> 3);
  const Bytes few(10, std::byte{'k'});
  const auto before = compressor.frame(few), longer = compressor.frame(noise),
             after = compressor.frame(few);
  ASSERT_TRUE(before.ok() && longer.ok() && after.ok());
  EXPECT_GT(longer->size(), after->size());
  EXPECT_EQ(*before, *after);
}

TEST_F(ArchiveFrames, AShardThatWasCutOffIsRefused) {
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  EXPECT_FALSE(Shard::open(path_).ok());
}

TEST_F(ArchiveFrames, DamagedBytesAreAnError) {
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(10);
  file.put('!');
  file.close();
  auto shard = Shard::open(path_);
  ASSERT_TRUE(shard.ok());
  EXPECT_FALSE((*shard)->read_part(0).ok());
}

TEST_F(ArchiveFrames, DamageOfTheTableIsSeen) {
  damage(-17);
  EXPECT_FALSE(Shard::open(path_).ok());
}

/// The reader does not allocate memory only because a table, which may be wrong, asks for it.
TEST_F(ArchiveFrames, ATableThatAsksForMoreThanTheFrameHasIsRefused) {
  Compressor compressor(3);
  Bytes frame = *compressor.frame(Bytes(15, std::byte{'a'}));
  const auto read = [&](std::uint32_t plain) {
    write_one(frame, plain);
    return read_first();
  };
  EXPECT_TRUE(read(15).ok());
  EXPECT_EQ(read(16).error().detail, "a frame is not as long as its table says");
  EXPECT_EQ(read(0xFFFFFFFF).error().detail, "a frame is shorter than its entry in the table");
  // The frame's header claims the same size; its only block is empty.
  frame.clear();
  for (const unsigned byte :
       {0x28U, 0xB5U, 0x2FU, 0xFDU, 0xA0U, 0xFFU, 0xFFU, 0xFFU, 0xFFU, 0x01U, 0x00U, 0x00U})
    frame.push_back(static_cast<std::byte>(byte));
  EXPECT_EQ(read(0xFFFFFFFF).error().detail, "a frame is shorter than its entry in the table");
}

/// A compressed block of four bytes may expand to 128 KiB.
TEST_F(ArchiveFrames, WhatIsPackedBestIsRead) {
  for (const std::size_t size : {std::size_t{128} << 10, std::size_t{4} << 20}) {
    write_one(*Compressor(3).frame(Bytes(size)), static_cast<std::uint32_t>(size));
    EXPECT_TRUE(read_first().ok());
  }
}

constexpr std::size_t kLong = (17 << 20) + 5;

Bytes long_bytes() {
  Bytes plain(kLong);
  for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i >> 12);
  return plain;
}

TEST_F(ArchiveFrames, ALongFrameIsReadInParts) {
  const Bytes plain = long_bytes();
  write_one(*Compressor(1).frame(plain), static_cast<std::uint32_t>(plain.size()));
  auto shard = Shard::open(path_);
  ASSERT_TRUE(shard.ok());
  for (const std::size_t offset :
       {std::size_t{0}, kLong - 1, std::size_t{1} << 20, kLong / 2, kLong / 2 + 1}) {
    const auto part = (*shard)->read_part(offset);
    ASSERT_TRUE(part.ok()) << part.error().text();
    EXPECT_TRUE(part->place.contains(offset));
    EXPECT_LE(part->bytes.size(), 4U << 20);
    ASSERT_EQ(part->bytes.size(), part->place.length());
    EXPECT_TRUE(std::equal(part->bytes.begin(), part->bytes.end(),
                           plain.begin() + static_cast<std::ptrdiff_t>(part->place.begin)));
  }
  Bytes all(plain.size());
  ASSERT_TRUE((*shard)->read({0, all.size()}, all.data()).ok());
  EXPECT_TRUE(all == plain);
}

TEST_F(ArchiveFrames, DamageOfALongFrameIsSeen) {
  const Bytes plain = long_bytes();
  Bytes frame = *Compressor(1).frame(plain);
  const auto read_all = [&](const Bytes& bytes, std::size_t size) {
    write_one(bytes, static_cast<std::uint32_t>(size));
    Bytes out(size);
    return (*Shard::open(path_))->read({0, size}, out.data());
  };
  EXPECT_TRUE(read_all(frame, kLong).ok());
  EXPECT_EQ(read_all(frame, kLong - 1).error().detail, "a frame is not as long as its table says");
  EXPECT_EQ(read_all(Bytes(frame.begin(), frame.end() - 20), kLong).error().detail,
            "a frame is shorter than its table says");
  frame.back() ^= std::byte{1};  // of the checksum
  EXPECT_FALSE(read_all(frame, kLong).ok());
}

}  // namespace
}  // namespace pario::archive
