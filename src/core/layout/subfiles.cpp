#include "core/layout/subfiles.hpp"

#include <charconv>
#include <limits>

namespace pario::layout {
namespace {

constexpr std::string_view kFirstLine = "pario subfiles 1\n";

/// Removes "name number\n" from the front of the text; returns 0 if it is missing.
std::uint64_t take_line(std::string_view& text, std::string_view name) {
  if (!text.starts_with(name)) return 0;
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data() + name.size(), end, value);
  if (error != std::errc{} || next == end || *next != '\n') return 0;
  text.remove_prefix(static_cast<std::size_t>(next + 1 - text.data()));
  return value;
}

}  // namespace

std::string SubfileMap::text() const {
  constexpr std::size_t kDigits = std::numeric_limits<std::uint64_t>::digits10 + 1;
  const std::string bytes = std::to_string(recorded_size);
  return std::string(kFirstLine) + "files " + std::to_string(files) + "\nunit " +
         std::to_string(unit) + "\nsize " + std::string(kDigits - bytes.size(), '0') + bytes + "\n";
}

std::optional<SubfileMap> SubfileMap::parse(std::string_view text) {
  if (!text.starts_with(kFirstLine)) return std::nullopt;
  text.remove_prefix(kFirstLine.size());
  const std::uint64_t files = take_line(text, "files ");
  const std::uint64_t unit = take_line(text, "unit ");
  if (files == 0 || files > std::numeric_limits<std::uint32_t>::max() || unit == 0)
    return std::nullopt;
  return SubfileMap{unit, static_cast<std::uint32_t>(files), take_line(text, "size ")};
}

}  // namespace pario::layout
