#include "data/records/checksum.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace pario::records {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

std::uint32_t by_table(std::span<const std::byte> data, std::uint32_t crc) {
  static constexpr auto kTable = make_table();
  for (const std::byte byte : data)
    crc = crc >> 8 ^ kTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFF];
  return crc;
}

#if defined(__x86_64__)
/// A linear function of checksums: the image of each bit.
using Matrix = std::array<std::uint32_t, 32>;

constexpr std::uint32_t multiply(const Matrix& matrix, std::uint32_t checksum) {
  std::uint32_t sum = 0;
  for (std::size_t bit = 0; bit < 32; ++bit)
    if ((checksum >> bit & 1) != 0) sum ^= matrix[bit];
  return sum;
}

/// The function that appends `bytes` zeros, a power of two, to the data of a checksum.
constexpr Matrix append_zeros(std::uint64_t bytes) {
  Matrix matrix{kPolynomial};  // one zero bit
  for (std::size_t bit = 1; bit < 32; ++bit) matrix[bit] = std::uint32_t{1} << (bit - 1);
  for (std::uint64_t bits = 1; bits < 8 * bytes; bits *= 2) {
    Matrix square{};
    for (std::size_t bit = 0; bit < 32; ++bit) square[bit] = multiply(matrix, matrix[bit]);
    matrix = square;
  }
  return matrix;
}

/// A Matrix as a table of the images of each byte.
using ZerosTable = std::array<std::array<std::uint32_t, 256>, 4>;
constexpr ZerosTable make_zeros_table(std::uint64_t bytes) {
  const Matrix matrix = append_zeros(bytes);
  ZerosTable table{};
  for (std::size_t place = 0; place < 4; ++place)
    for (std::uint32_t byte = 0; byte < 256; ++byte)
      table[place][byte] = multiply(matrix, byte << 8 * place);
  return table;
}

std::uint64_t look_up(const ZerosTable& table, std::uint64_t crc) {
  return table[0][crc & 0xFF] ^ table[1][crc >> 8 & 0xFF] ^ table[2][crc >> 16 & 0xFF] ^
         table[3][crc >> 24 & 0xFF];
}

std::uint64_t word_at(const std::byte* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// Processes three stripes at a time, as often as they fit, because the instruction has a latency
/// of three cycles and one can begin in each. Moves `data` to their end.
template <std::uint64_t kStripe>
__attribute__((target("sse4.2,crc32"))) std::uint64_t by_stripes(std::span<const std::byte>& data,
                                                                 std::uint64_t crc) {
  static constexpr ZerosTable kZeros = make_zeros_table(kStripe);
  for (; data.size() >= 3 * kStripe; data = data.subspan(3 * kStripe)) {
    std::uint64_t second = 0, third = 0;
    for (std::uint64_t at = 0; at < kStripe; at += 8) {
      crc = __builtin_ia32_crc32di(crc, word_at(data.data() + at));
      second = __builtin_ia32_crc32di(second, word_at(data.data() + kStripe + at));
      third = __builtin_ia32_crc32di(third, word_at(data.data() + 2 * kStripe + at));
    }
    crc = look_up(kZeros, look_up(kZeros, crc) ^ second) ^ third;
  }
  return crc;
}

__attribute__((target("sse4.2,crc32"))) std::uint32_t by_instruction(
    std::span<const std::byte> data, std::uint32_t crc) {
  std::uint64_t wide = by_stripes<4096>(data, crc);
  wide = by_stripes<256>(data, wide);
  std::size_t at = 0;
  for (; data.size() - at >= 8; at += 8) {
    wide = __builtin_ia32_crc32di(wide, word_at(data.data() + at));
  }
  return by_table(data.subspan(at), static_cast<std::uint32_t>(wide));
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(data, ~before);
#endif
  return ~by_table(data, ~before);
}

std::uint32_t mask_crc32c(std::uint32_t checksum) { return std::rotr(checksum, 15) + 0xA282EAD8; }

}  // namespace pario::records
