// The layout of N physical files that are one logical file. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pario::layout {

/// Round-robin units: byte o lies in file (o / unit) % files at offset (o / unit / files) * unit +
/// o % unit.
struct SubfileMap {
  std::uint64_t unit = 4 << 20;
  std::uint32_t files = 1;
  /// The recorded size of the whole: each file has at least its part of it. 0: not recorded.
  std::uint64_t recorded_size = 0;

  struct Place {
    std::uint32_t file;
    std::uint64_t offset;
    std::uint64_t length;  ///< bytes from there on that are contiguous in both
    bool operator==(const Place&) const = default;
  };
  Place place_of(std::uint64_t offset) const {
    const std::uint64_t stripe = offset / unit, inside = offset % unit;
    return {static_cast<std::uint32_t>(stripe % files), stripe / files * unit + inside,
            unit - inside};
  }
  std::uint64_t offset_of(std::uint32_t file, std::uint64_t offset) const {
    return (offset / unit * files + file) * unit + offset % unit;
  }
  /// Returns the size of one file if the whole has `size` bytes.
  std::uint64_t part_size(std::uint32_t file, std::uint64_t size) const {
    const std::uint64_t rows = size / unit / files, rest = size - rows * unit * files,
                        before = file * unit;
    return rows * unit + (rest > before ? std::min(rest - before, unit) : 0);
  }
  /// Returns the least size of the whole if one of the files has `size` bytes.
  std::uint64_t whole_size(std::uint32_t file, std::uint64_t size) const {
    return size == 0 ? 0 : offset_of(file, size - 1) + 1;
  }

  /// Formats four lines: "pario subfiles 1", "files N", "unit BYTES", "size BYTES". The number of
  /// the last one has 20 digits, so that a new size overwrites an old one.
  std::string text() const;
  /// Parses that text, also without the last line; nothing for any other text or version.
  static std::optional<SubfileMap> parse(std::string_view text);
  bool operator==(const SubfileMap&) const = default;
};

}  // namespace pario::layout
