// N physical files that are one logical file. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pario::layout {

/// Unit after unit goes to file after file: byte o lies in file (o / unit) % files at (o / unit / files) * unit + o % unit.
struct SubfileMap {
  std::uint64_t unit = 4 << 20;
  std::uint32_t files = 1;

  struct Place {
    std::uint32_t file;
    std::uint64_t offset;
    std::uint64_t length;  ///< bytes from there that are neighbours in both
    bool operator==(const Place&) const = default;
  };
  Place place_of(std::uint64_t offset) const {
    const std::uint64_t stripe = offset / unit, inside = offset % unit;
    return {static_cast<std::uint32_t>(stripe % files), stripe / files * unit + inside, unit - inside};
  }
  std::uint64_t offset_of(std::uint32_t file, std::uint64_t offset) const { return (offset / unit * files + file) * unit + offset % unit; }
  /// How large a file of the N is when the whole has `size` bytes.
  std::uint64_t part_size(std::uint32_t file, std::uint64_t size) const {
    const std::uint64_t rows = size / unit / files, rest = size - rows * unit * files, before = file * unit;
    return rows * unit + (rest > before ? std::min(rest - before, unit) : 0);
  }
  /// How large the whole is at least when one of the files has `size` bytes.
  std::uint64_t whole_size(std::uint32_t file, std::uint64_t size) const { return size == 0 ? 0 : offset_of(file, size - 1) + 1; }

  /// Three lines: "pario subfiles 1", "files N", "unit BYTES".
  std::string text() const;
  /// Nothing for what is no such text, or of another version.
  static std::optional<SubfileMap> parse(std::string_view text);
  bool operator==(const SubfileMap&) const = default;
};

}  // namespace pario::layout
