// Parsing of sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pario::base {

/// Parses "4096", "64K", "256M", "2G", "1T" (powers of 1024; also in lower case, and with "B" or
/// "iB" after the unit). Nothing for other texts, and for sizes of more than 64 bits.
std::optional<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace pario::base
