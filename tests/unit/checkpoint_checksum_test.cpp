// The checksum of an array depends on every element and its position, but not on the division of
// the array.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "data/checkpoint/checkpoint.hpp"

namespace pario::checkpoint {
namespace {

using Counts = std::vector<std::uint64_t>;

/// Computes the checksum of a box of an array in memory.
template <class Element>
std::uint64_t sum(const std::vector<Element>& array, const Counts& whole, const Counts& begin,
                  const Counts& shape) {
  std::vector<std::int64_t> strides(whole.size());
  std::int64_t stride = sizeof(Element), first = 0;
  for (std::size_t axis = whole.size(); axis-- > 0;
       stride *= static_cast<std::int64_t>(whole[axis])) {
    strides[axis] = stride;
    first += stride * static_cast<std::int64_t>(begin[axis]);
  }
  return checksum(reinterpret_cast<const std::byte*>(array.data()) + first,
                  {sizeof(Element), whole, begin, shape, strides});
}

template <class Element>
std::vector<Element> numbers(std::size_t count) {
  std::vector<Element> array(count);
  std::iota(array.begin(), array.end(), Element{3});
  return array;
}

template <class Element>
class Checksum : public ::testing::Test {};
using Elements = ::testing::Types<std::uint8_t, std::uint16_t, float, double, long double>;
TYPED_TEST_SUITE(Checksum, Elements);

TYPED_TEST(Checksum, IsTheSumOfThoseOfBoxesThatTile) {
  const auto array = numbers<TypeParam>(4 * 5 * 6);
  const Counts whole{4, 5, 6};
  const std::uint64_t all = sum(array, whole, {0, 0, 0}, whole);
  EXPECT_EQ(sum(array, whole, {0, 0, 0}, {4, 5, 2}) + sum(array, whole, {0, 0, 2}, {4, 2, 4}) +
                sum(array, whole, {0, 2, 2}, {4, 3, 4}),
            all);
}

TYPED_TEST(Checksum, IsTheSameHoweverElementsLieInMemory) {
  const auto array = numbers<TypeParam>(203);
  std::vector<TypeParam> apart(2 * array.size());
  for (std::size_t i = 0; i < array.size(); ++i)
    std::memcpy(&apart[2 * i], &array[i], sizeof(TypeParam));
  const Counts shape{array.size()}, begin{0};
  const std::vector<std::int64_t> strides{2 * sizeof(TypeParam)};
  EXPECT_EQ(checksum(reinterpret_cast<const std::byte*>(apart.data()),
                     {sizeof(TypeParam), shape, begin, shape, strides}),
            sum(array, shape, begin, shape));
}

TYPED_TEST(Checksum, ChangesWithAnyElement) {
  const auto array = numbers<TypeParam>(24);
  const std::uint64_t all = sum(array, {24}, {0}, {24});
  for (std::size_t i = 0; i < array.size(); ++i) {
    auto other = array;
    other[i] += 1;
    EXPECT_NE(sum(other, {24}, {0}, {24}), all) << i;
  }
}

TYPED_TEST(Checksum, ChangesWhenElementsChangePlaces) {
  auto array = numbers<TypeParam>(24);
  const std::uint64_t all = sum(array, {24}, {0}, {24});
  std::swap(array[3], array[20]);
  EXPECT_NE(sum(array, {24}, {0}, {24}), all);
}

TEST(Checksums, AreThoseOfTheDocument) {
  // Word 0 at place 0 is the first output of SplitMix64 with seed 0.
  EXPECT_EQ(sum(std::vector<std::uint64_t>{0}, {1}, {0}, {1}), 0xE220A8397B1DCDAF);
  EXPECT_EQ(sum(std::vector<std::uint64_t>{0, 0}, {2}, {0}, {2}),
            0xE220A8397B1DCDAF + 0x6E789E6AA1B965F4);
}

TEST(Checksums, OfNothingAreZeroAndOfAScalarOneTerm) {
  EXPECT_EQ(sum(std::vector<double>(1), {0, 3}, {0, 0}, {0, 3}), 0u);
  EXPECT_EQ(sum(std::vector<std::uint64_t>{7}, {}, {}, {}),
            sum(std::vector<std::uint64_t>{7}, {1}, {0}, {1}));
}

/// Computes the sums of all chunks of a block from boxes of an array in memory.
Counts chunk_sums(const std::vector<double>& array, const Counts& whole,
                  const std::vector<std::pair<Counts, Counts>>& boxes, const Grid& grid) {
  Counts sums(std::accumulate(grid.counts.begin(), grid.counts.end(), std::uint64_t{1},
                              std::multiplies<>()));
  const auto rows = static_cast<std::int64_t>(whole[1]);
  const std::vector<std::int64_t> strides{rows * 8, 8};
  for (const auto& [begin, shape] : boxes) {
    const auto* first = reinterpret_cast<const std::byte*>(&array[begin[0] * whole[1] + begin[1]]);
    add_chunk_checksums(first, {8, whole, begin, shape, strides}, grid, 0, sums);
  }
  return sums;
}

TEST(Checksums, OfChunksAddUpFromBoxesThatCrossThem) {
  const auto array = numbers<double>(7 * 10);
  const Counts whole{7, 10}, begin{1, 2}, chunk{1, 3},
      counts{5, 3};  // of rows 1 to 5, columns 2 to 9
  Counts expected;
  for (std::uint64_t row = 0; row < 5; ++row)
    for (const auto& [column, width] :
         std::vector<std::pair<std::uint64_t, std::uint64_t>>{{2, 3}, {5, 3}, {8, 2}})
      expected.push_back(sum(array, whole, {1 + row, column}, {1, width}));
  EXPECT_EQ(chunk_sums(array, whole, {{{1, 2}, {5, 8}}}, {begin, chunk, counts}), expected);
  EXPECT_EQ(chunk_sums(array, whole,
                       {{{1, 2}, {5, 4}}, {{1, 6}, {2, 4}}, {{3, 6}, {3, 4}}, {{3, 6}, {0, 4}}},
                       {begin, chunk, counts}),
            expected);
}

TEST(Checksums, OfPackedBoxesAreThoseOfEach) {
  const std::vector<double> numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<std::uint64_t> boxes{8, 2, 5, 4, 1, 0, 2, 4,  // rows 1 and 2 of five
                                         8, 0,                    // one number
                                         8, 1, 9, 2, 0,           // nothing
                                         8, 1, 9, 2, 3};
  const auto row = [&numbers](std::size_t first, std::size_t count) {
    return std::vector<double>(numbers.begin() + first, numbers.begin() + first + count);
  };
  std::vector<double> five_rows(20);
  std::copy_n(numbers.begin(), 8, five_rows.begin() + 4);
  std::vector<double> nine(9);
  std::copy_n(numbers.begin() + 9, 3, nine.begin() + 2);
  const std::vector<std::uint64_t> each{sum(five_rows, {5, 4}, {1, 0}, {2, 4}),
                                        sum(row(8, 1), {}, {}, {}), 0, sum(nine, {9}, {2}, {3})};
  EXPECT_EQ(checksums(std::as_bytes(std::span(numbers)), boxes), each);
}

}  // namespace
}  // namespace pario::checkpoint
