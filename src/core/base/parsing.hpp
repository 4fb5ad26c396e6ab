// Parsing of short texts: words, numbers, sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pario::base {

/// Removes the text up to `separator`, or all of it, from `rest` and returns it.
std::string_view cut(std::string_view& rest, char separator);

/// Returns the number at the beginning of a text, behind blanks, such as a field of a file in
/// /proc; 0 if there is none, or if it has more than 64 bits.
std::uint64_t leading_number(std::string_view text, int radix = 10);

/// Parses "4096", "64K", "256M", "2G", "1T" (powers of 1024; also in lower case, and with "B" or
/// "iB" after the unit). Nothing for other texts, and for sizes of more than 64 bits.
std::optional<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace pario::base
