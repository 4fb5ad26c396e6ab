// Columns of ascending numbers, the keys of a shuffle, checksums of TFRecord.
#include <gtest/gtest.h>

#include <random>

#include "data/records/checksum.hpp"
#include "data/records/column.hpp"
#include "data/records/philox.hpp"
#include "records_support.hpp"

namespace pario::records {
namespace {

using Numbers = std::vector<std::uint64_t>;

std::vector<std::byte> pack(const Numbers& numbers) {
  ColumnBuilder builder;
  for (const std::uint64_t number : numbers) builder.add(number);
  return builder.finish();
}

Numbers read_back(const std::vector<std::byte>& bytes, std::size_t count) {
  EXPECT_TRUE(valid_column(bytes, count));
  const Column column(bytes, count);
  Numbers out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(column.at(i));
  return out;
}

Numbers offsets(std::size_t count, std::uint64_t least, std::uint64_t most) {
  std::mt19937_64 random(count);
  Numbers out{0};
  while (out.size() < count) out.push_back(out.back() + least + random() % (most - least + 1));
  return out;
}

TEST(Column, GivesBackWhatItWasGiven) {
  for (const std::size_t count : {0, 1, 2, 127, 128, 129, 1000}) {
    const Numbers numbers = offsets(count + 1, 0, 300);
    EXPECT_EQ(read_back(pack(numbers), numbers.size()), numbers) << count;
  }
}

TEST(Column, HoldsTheLargestLeapsThereAre) {
  Numbers numbers(200, 5);
  numbers[64] = numbers[65] = kLargestNumber - 1;
  for (std::size_t i = 66; i < numbers.size(); ++i) numbers[i] = kLargestNumber - 1;
  EXPECT_EQ(read_back(pack(numbers), numbers.size()), numbers);
}

TEST(Column, HoldsNumbersInAnyOrder) {
  Numbers numbers;
  for (std::uint64_t i = 0; i < 300; ++i)
    numbers.push_back(i % 70 == 0 ? kLargestNumber - 1 - i : i * 7919 % 300);
  EXPECT_EQ(read_back(pack(numbers), numbers.size()), numbers);
}

TEST(Column, NeedsNothingPerNumberWhereTheStepIsConstant) {
  Numbers numbers;
  for (std::uint64_t i = 0; i < 12800; ++i) numbers.push_back(100 + 4096 * i);
  EXPECT_EQ(pack(numbers).size(), 100 * sizeof(ColumnBlock) + 8);
}

TEST(Column, NeedsTwoBytesForLinesAndFourForPictures) {
  EXPECT_LT(pack(offsets(100'000, 20, 180)).size(), 200'000U);
  EXPECT_LT(pack(offsets(100'000, 10'000, 200'000)).size(), 400'000U);
}

TEST(Column, FindsTheFirstNumberThatIsNotLess) {
  const Numbers numbers{3, 3, 7, 100};
  const auto bytes = pack(numbers);
  const Column column(bytes, 4);
  EXPECT_EQ(column.first_from(0), 0U);
  EXPECT_EQ(column.first_from(4), 2U);
  EXPECT_EQ(column.first_from(7), 2U);
  EXPECT_EQ(column.first_from(101), 4U);
}

TEST(Column, DamageIsNoticedBeforeItIsRead) {
  auto bytes = pack(offsets(300, 1, 999));
  EXPECT_FALSE(valid_column(bytes, 5000));
  bytes[16] = std::byte{60};  // wider than there can be
  EXPECT_FALSE(valid_column(bytes, 300));
  EXPECT_FALSE(valid_column({}, 0));
}

TEST(Philox, IsTheOneOfThePaper) {  // known answers that come with Random123
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Checksum, IsTheCastagnoliOne) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\0'))), 0x8A9136AAU);  // RFC 3720
}

}  // namespace
}  // namespace pario::records
