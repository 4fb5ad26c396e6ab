#include <gtest/gtest.h>

#include <string>

#include "core/base/base.hpp"

namespace pario::base {
namespace {

// Vectors that the reference implementation publishes.
TEST(Xxh64, AgreesWithTheReference) {
  EXPECT_EQ(xxh64(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(xxh64("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(xxh64("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(xxh64("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
}

TEST(Xxh64, DependsOnTheSeed) { EXPECT_NE(xxh64("abc", 1), xxh64("abc")); }

TEST(Xxh64, DependsOnEveryByteAtEveryLength) {
  for (std::size_t length = 1; length < 100; ++length) {
    std::string text(length, 'x');
    const auto before = xxh64(text);
    text.back() = 'y';
    EXPECT_NE(xxh64(text), before) << length;
  }
}

TEST(ByteSize, TakesUnitsAsPeopleWriteThem) {
  EXPECT_EQ(parse_byte_size("4096"), 4096u);
  EXPECT_EQ(parse_byte_size("64K"), 65536u);
  EXPECT_EQ(parse_byte_size("256m"), 256u << 20);
  EXPECT_EQ(parse_byte_size("2GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(parse_byte_size("1TB"), std::uint64_t{1} << 40);
}

TEST(ByteSize, RefusesWhatIsNoSize) {
  for (const char* bad : {"", "K", "-1", "1X", "12M:verbose", " 1M", "1M ", "1MM",
                          "99999999999999999999", "99999999999T"})
    EXPECT_EQ(parse_byte_size(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace pario::base
