// Sizes as people write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pario::base {

/// "4096", "64K", "256M", "2G", "1T" (powers of 1024; lower case, a following "B" or "iB" are accepted). Nothing when it is no size or
/// does not fit into 64 bits.
std::optional<std::uint64_t> parse_byte_size(std::string_view text);

}  // namespace pario::base
