#include "data/records/column.hpp"

#include <algorithm>

namespace pario::records {
namespace {

constexpr std::uint64_t kWidest =
    57;  // an unaligned word holds that many bits from any bit of its first byte on

/// The residuals of numbers from the line from the first to the last: the least one (as a signed
/// number), and the bits that the others need relative to it.
struct Fit {
  std::uint64_t base, stride, width;
};

Fit fit(std::span<const std::uint64_t> numbers) {
  const auto steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(numbers.size()) - 1);
  const auto stride = static_cast<std::uint64_t>(
      static_cast<std::int64_t>(numbers.back() - numbers.front()) / steps);
  std::int64_t least = 0, most = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto off = static_cast<std::int64_t>(numbers[i] - numbers.front() - i * stride);
    least = std::min(least, off);
    most = std::max(most, off);
  }
  return {numbers.front() + static_cast<std::uint64_t>(least), stride,
          static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(most - least)))};
}

}  // namespace

std::uint64_t Column::first_from(std::uint64_t number) const {
  std::uint64_t low = 0, high = count_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (at(middle) < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

bool valid_column(std::span<const std::byte> bytes, std::uint64_t count) {
  const std::uint64_t blocks = count / kNumbersPerBlock + (count % kNumbersPerBlock != 0);
  if (bytes.size() < 8 || blocks > (bytes.size() - 8) / sizeof(ColumnBlock)) return false;
  const std::uint64_t room = bytes.size() - blocks * sizeof(ColumnBlock) - 8;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    ColumnBlock block;
    std::memcpy(&block, bytes.data() + i * sizeof block, sizeof block);
    const std::uint64_t width = block.place & 0xFF, place = block.place >> 8;
    if (width > kWidest || place > room || width * kNumbersPerBlock / 8 > room - place)
      return false;
  }
  return true;
}

void ColumnBuilder::expect(std::uint64_t numbers, std::uint64_t bytes) {
  blocks_.reserve(numbers / kNumbersPerBlock + 1);
  residuals_.reserve(bytes);
}

void ColumnBuilder::close_block(std::uint64_t count) {
  const std::span<const std::uint64_t> numbers(pending_, count);
  const Fit line = fit(numbers);
  const std::uint64_t place = residuals_.size(),
                      bytes = kNumbersPerBlock * line.width / 8;  // 128 numbers: no remainder
  blocks_.push_back({line.base, line.stride, place << 8 | line.width});
  residuals_.resize(place + bytes + sizeof(std::uint64_t));  // writes are whole words
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t bit = i * line.width;
    std::byte* const at = residuals_.data() + place + bit / 8;
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    word |= (numbers[i] - line.base - i * line.stride) << bit % 8;
    std::memcpy(at, &word, sizeof word);
  }
  residuals_.resize(place + bytes);
}

std::vector<std::byte> ColumnBuilder::finish() {
  if (count_ % kNumbersPerBlock != 0) close_block(count_ % kNumbersPerBlock);
  std::vector<std::byte> out(blocks_.size() * sizeof(ColumnBlock) + residuals_.size() + 8);
  if (!blocks_.empty())
    std::memcpy(out.data(), blocks_.data(), blocks_.size() * sizeof(ColumnBlock));
  if (!residuals_.empty())
    std::memcpy(out.data() + blocks_.size() * sizeof(ColumnBlock), residuals_.data(),
                residuals_.size());
  *this = {};
  return out;
}

}  // namespace pario::records
