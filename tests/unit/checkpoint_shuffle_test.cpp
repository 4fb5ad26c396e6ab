// Shuffled elements are in the order of HDF5's filter, and can be restored.
#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <string_view>

#include "data/checkpoint/checkpoint.hpp"

namespace pario::checkpoint {
namespace {

using Reorder = void (*)(std::span<const std::byte>, std::size_t, std::byte*);

std::string reorder_text(Reorder reorder, std::string_view text, std::size_t element) {
  std::string out(text.size(), '?');
  reorder(std::as_bytes(std::span(text)), element, reinterpret_cast<std::byte*>(out.data()));
  return out;
}

TEST(Shuffle, GathersTheFirstBytesOfAllElementsThenTheSecondOnes) {
  EXPECT_EQ(reorder_text(shuffle, "abcABC123xyz", 3), "aA1xbB2ycC3z");
  EXPECT_EQ(reorder_text(shuffle, "abcdef", 1), "abcdef");
  EXPECT_EQ(reorder_text(shuffle, "", 8), "");
}

TEST(Shuffle, IsReversedForElementsOfAnySize) {
  std::string text(5 * 7 * 16, '\0');
  std::iota(text.begin(), text.end(), '\0');
  for (const std::size_t element : {1, 2, 4, 5, 7, 8, 16})
    EXPECT_EQ(reorder_text(unshuffle, reorder_text(shuffle, text, element), element), text)
        << element;
}

}  // namespace
}  // namespace pario::checkpoint
