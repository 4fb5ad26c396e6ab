// CRC-32C (Castagnoli), the checksum of TFRecord files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pario::records {

/// `before`: the checksum of the bytes before `data`.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t before = 0);
/// Rotates and shifts a checksum, so that data that contains its own checksum is checked as well.
std::uint32_t mask_crc32c(std::uint32_t checksum);
inline std::uint32_t masked_crc32c(std::span<const std::byte> data) {
  return mask_crc32c(crc32c(data));
}

}  // namespace pario::records
