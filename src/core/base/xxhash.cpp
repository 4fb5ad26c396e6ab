#include "core/base/xxhash.hpp"

#include <bit>
#include <cstring>

namespace pario::base {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                        kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                        kPrime5 = 0x27D4EB2F165667C5;

template <class T>
T read(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint64_t mix(std::uint64_t lane, std::uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ mix(0, lane)) * kPrime1 + kPrime4;
}

/// Consumes whole stripes of 32 bytes, advancing `at`.
std::uint64_t eat_stripes(const unsigned char*& at, const unsigned char* end, std::uint64_t seed) {
  std::uint64_t lanes[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
  for (; end - at >= 32; at += 32)
    for (std::size_t i = 0; i < 4; ++i) lanes[i] = mix(lanes[i], read<std::uint64_t>(at + 8 * i));
  std::uint64_t hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
                       std::rotl(lanes[3], 18);
  for (const std::uint64_t lane : lanes) hash = merge(hash, lane);
  return hash;
}

std::uint64_t avalanche(std::uint64_t hash) {
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

}  // namespace

std::uint64_t xxh64(const void* data, std::size_t size, std::uint64_t seed) {
  const auto* at = static_cast<const unsigned char*>(data);
  const auto* end = at + size;
  std::uint64_t hash = size >= 32 ? eat_stripes(at, end, seed) : seed + kPrime5;
  hash += size;
  for (; end - at >= 8; at += 8)
    hash = std::rotl(hash ^ mix(0, read<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (end - at >= 4) {
    hash = std::rotl(hash ^ read<std::uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at != end; ++at) hash = std::rotl(hash ^ *at * kPrime5, 11) * kPrime1;
  return avalanche(hash);
}

}  // namespace pario::base
