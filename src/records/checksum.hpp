// CRC-32C (Castagnoli), as TFRecord files have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pario::records {

std::uint32_t crc32c(std::span<const std::byte> data);
/// Rotated and shifted, so that data that holds its own checksum is checked no worse.
std::uint32_t masked_crc32c(std::span<const std::byte> data);

}  // namespace pario::records
