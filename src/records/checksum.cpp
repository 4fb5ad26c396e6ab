#include "records/checksum.hpp"

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
  for (const std::byte byte : data) crc = crc >> 8 ^ kTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFF];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::span<const std::byte> data, std::uint32_t crc) {
  std::uint64_t wide = crc;
  std::size_t at = 0;
  for (; data.size() - at >= 8; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, data.data() + at, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
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
