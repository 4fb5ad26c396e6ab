// Extent: a half-open interval of bytes of a file.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pario::base {

/// [begin, end); empty when begin == end, never begin > end.
struct Extent {
  std::uint64_t begin = 0, end = 0;

  static Extent at(std::uint64_t offset, std::uint64_t length) { return {offset, offset + length}; }
  std::uint64_t length() const { return end - begin; }
  bool empty() const { return begin == end; }
  bool contains(std::uint64_t offset) const { return offset >= begin && offset < end; }
  bool operator==(const Extent&) const = default;
};

inline Extent intersection(Extent a, Extent b) {
  const std::uint64_t begin = std::max(a.begin, b.begin), end = std::min(a.end, b.end);
  return begin < end ? Extent{begin, end} : Extent{begin, begin};
}

/// Returns the smallest extent with both; an empty one adds nothing.
inline Extent hull(Extent a, Extent b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

/// The unit of mappings and of the page cache: bytes.
constexpr std::uint64_t kPage = 4096;

inline std::uint64_t round_down(std::uint64_t value, std::uint64_t unit) {
  return value - value % unit;
}
inline std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return round_down(value + unit - 1, unit);
}

}  // namespace pario::base
