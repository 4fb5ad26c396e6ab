// Compressed columns of ascending numbers: offsets of records and of their names. Numbers out of
// order are possible, and take more space.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace pario::records {

static_assert(std::endian::native == std::endian::little,
              "the index is read as it lies in the file");

/// Numbers of a block, which has one straight line; their residuals from it are packed.
inline constexpr std::uint64_t kNumbersPerBlock = 128;
/// All numbers are less than this.
inline constexpr std::uint64_t kLargestNumber = std::uint64_t{1} << 56;

/// number i of the block = base + i * stride + residual i, modulo 2^64.
struct ColumnBlock {
  std::uint64_t base, stride;
  std::uint64_t place;  ///< bits 0-7: bits of a residual, at most 57; the others: offset of the
                        ///< first residual, in bytes after all blocks
};
static_assert(sizeof(ColumnBlock) == 24);

/// A column in memory or in a mapped file: blocks, then residuals, then 8 bytes of zeros.
class Column {
 public:
  Column() = default;
  /// `bytes` must outlive the column, and valid_column() must be true.
  Column(std::span<const std::byte> bytes, std::uint64_t count)
      : blocks_(bytes.data()),
        residuals_(bytes.data() +
                   (count + kNumbersPerBlock - 1) / kNumbersPerBlock * sizeof(ColumnBlock)),
        count_(count) {}

  std::uint64_t count() const { return count_; }
  std::uint64_t at(std::uint64_t index) const {
    ColumnBlock block;
    std::memcpy(&block, blocks_ + index / kNumbersPerBlock * sizeof block, sizeof block);
    const std::uint64_t within = index % kNumbersPerBlock, width = block.place & 0xFF;
    return block.base + within * block.stride + residual(block.place >> 8, within * width, width);
  }
  /// The first index whose number is at least `number`; count() if there is none.
  std::uint64_t first_from(std::uint64_t number) const;

 private:
  std::uint64_t residual(std::uint64_t place, std::uint64_t bit, std::uint64_t width) const {
    std::uint64_t word;
    std::memcpy(&word, residuals_ + place + bit / 8, sizeof word);
    return word >> bit % 8 & ((std::uint64_t{1} << width) - 1);
  }

  const std::byte* blocks_ = nullptr;
  const std::byte* residuals_ = nullptr;
  std::uint64_t count_ = 0;
};

/// True if all residuals of `count` numbers lie within `bytes`.
bool valid_column(std::span<const std::byte> bytes, std::uint64_t count);

/// Makes a column of numbers below kLargestNumber; the more evenly they ascend, the smaller it is.
class ColumnBuilder {
 public:
  void add(std::uint64_t number) {
    pending_[count_++ % kNumbersPerBlock] = number;
    if (count_ % kNumbersPerBlock == 0) close_block(kNumbersPerBlock);
  }
  std::uint64_t count() const { return count_; }
  /// Bytes of the column so far.
  std::uint64_t bytes() const { return blocks_.size() * sizeof(ColumnBlock) + residuals_.size(); }
  /// Reserves memory for the expected numbers; unused memory is never touched.
  void expect(std::uint64_t numbers, std::uint64_t bytes);
  /// The column; the builder is empty afterwards.
  std::vector<std::byte> finish();

 private:
  void close_block(std::uint64_t count);

  std::uint64_t pending_[kNumbersPerBlock] = {};
  std::uint64_t count_ = 0;
  std::vector<ColumnBlock> blocks_;
  std::vector<std::byte> residuals_;
};

}  // namespace pario::records
