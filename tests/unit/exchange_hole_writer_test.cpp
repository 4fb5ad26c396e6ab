// The one read-modify-write: bytes of holes stay, and permission is obtained before the read.
#include <string>

#include "exchange_world.hpp"

namespace pario::exchange {
namespace {

constexpr base::Extent kHull{10, 20};

/// Records the calls; refuses read-modify-writes if `refuses`.
class RecordingFile final : public MemoryFile {
 public:
  base::Status begin_modify(base::Extent) override {
    calls += "begin ";
    return refuses ? base::Status(base::Error{.number = EBUSY}) : base::Status();
  }
  void end_modify(base::Extent) override { calls += "end"; }
  base::Status write(std::uint64_t offset, std::span<const std::byte> data) override {
    calls += "write ";
    return MemoryFile::write(offset, data);
  }
  base::Result<std::uint64_t> read(std::uint64_t offset, std::span<std::byte> data) override {
    calls += "read ";
    return MemoryFile::read(offset, data);
  }

  std::string calls;
  bool refuses = false;
};

TEST(ExchangeHoleWriter, KeepsTheBytesOfHoles) {
  RecordingFile file;
  file.bytes = {{12, std::byte{7}}, {15, std::byte{8}}};
  Counters counters;
  std::vector<std::byte> image(kHull.length());
  {
    HoleWriter writer(file, counters);
    ASSERT_TRUE(writer.begin(kHull, image.data()).ok());
    image[5] = std::byte{1};
    ASSERT_TRUE(writer.write_back(image.data()).ok());
  }
  EXPECT_EQ(file.calls, "begin read write end");
  EXPECT_EQ(file.bytes[12], std::byte{7});
  EXPECT_EQ(file.bytes[15], std::byte{1});
  EXPECT_EQ(file.bytes[19], std::byte{0}) << "behind the old end of the file";
  EXPECT_EQ(counters.read_modify_writes, 1u);
  EXPECT_EQ(counters.system_write_bytes, kHull.length());
}

TEST(ExchangeHoleWriter, TouchesNothingWithoutPermission) {
  RecordingFile file;
  file.refuses = true;
  Counters counters;
  std::vector<std::byte> image(kHull.length());
  {
    HoleWriter writer(file, counters);
    EXPECT_EQ(writer.begin(kHull, image.data()).error().number, EBUSY);
  }
  EXPECT_EQ(file.calls, "begin ");
  EXPECT_EQ(counters.read_modify_writes, 0u);
}

TEST(ExchangeHoleWriter, ReleasesTheHullAfterAFailedRead) {
  RecordingFile file;
  file.fails = [](std::uint64_t, bool writing) { return !writing; };
  Counters counters;
  std::vector<std::byte> image(kHull.length());
  {
    HoleWriter writer(file, counters);
    EXPECT_FALSE(writer.begin(kHull, image.data()).ok());
  }
  EXPECT_EQ(file.calls, "begin read end");
}

}  // namespace
}  // namespace pario::exchange
