#include "core/trace/columns.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace pario::trace {
namespace {

std::vector<Event> random_events(std::size_t count) {
  std::mt19937_64 random(count);
  std::vector<Event> events(count);
  for (Event& event : events)
    event = {random(),
             random(),
             random(),
             random(),
             static_cast<std::uint32_t>(random()),
             static_cast<std::uint32_t>(random()),
             static_cast<std::uint32_t>(random()),
             static_cast<std::uint16_t>(random()),
             static_cast<std::uint8_t>(random()),
             static_cast<std::uint8_t>(random())};
  return events;
}

class Columns : public testing::TestWithParam<std::size_t> {};

TEST_P(Columns, DecodeToWhatWasEncoded) {
  const auto events = random_events(GetParam());
  std::vector<std::byte> columns(events.size() * sizeof(Event));
  std::vector<Event> decoded(events.size());
  encode_columns(events, columns.data());
  decode_columns(columns.data(), decoded);
  EXPECT_TRUE(events.empty() || std::memcmp(events.data(), decoded.data(), columns.size()) == 0);
}

TEST_P(Columns, LieAsTheFormatSays) {
  const auto events = random_events(GetParam());
  std::vector<std::byte> columns(events.size() * sizeof(Event));
  encode_columns(events, columns.data());
  const std::size_t rows = events.size();
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint64_t offset = events[row].offset - (row == 0 ? 0 : events[row - 1].offset);
    const auto function = static_cast<std::uint16_t>(events[row].function -
                                                     (row == 0 ? 0 : events[row - 1].function));
    for (std::size_t byte = 0; byte < 8; ++byte)
      ASSERT_EQ(std::to_integer<std::uint64_t>(columns[16 * rows + byte * rows + row]),
                offset >> (8 * byte) & 0xFF);
    for (std::size_t byte = 0; byte < 2; ++byte)
      ASSERT_EQ(std::to_integer<unsigned>(columns[44 * rows + byte * rows + row]),
                function >> (8 * byte) & 0xFFu);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Columns, testing::Values(0, 1, 15, 16, 17, 64, 100, 1000, 8192));

TEST(ColumnTable, CoversTheRowWithoutGaps) {
  std::size_t end = 0;
  for (const Column& column : kEventColumns) {
    EXPECT_EQ(column.offset, end) << column.name;
    end += column.width;
  }
  EXPECT_EQ(end, sizeof(Event));
}

}  // namespace
}  // namespace pario::trace
