// XXH64 (Yann Collet's hash, from its specification): the checksum and the path hash of the log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pario::base {

std::uint64_t xxh64(const void* data, std::size_t size, std::uint64_t seed = 0);
inline std::uint64_t xxh64(std::string_view text, std::uint64_t seed = 0) {
  return xxh64(text.data(), text.size(), seed);
}

}  // namespace pario::base
