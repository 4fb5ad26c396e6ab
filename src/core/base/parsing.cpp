#include "core/base/parsing.hpp"

#include <algorithm>
#include <charconv>

namespace pario::base {
namespace {

/// Returns the binary logarithm of a unit, -1 for an unknown one.
int unit_shift(std::string_view unit) {
  if (unit.empty() || unit == "B" || unit == "b") return 0;
  constexpr std::string_view kUnits = "KMGTkmgt";
  const auto place = kUnits.find(unit.front());
  const auto rest = unit.substr(1);
  if (place == kUnits.npos || !(rest.empty() || rest == "B" || rest == "b" || rest == "iB"))
    return -1;
  return 10 * (static_cast<int>(place % 4) + 1);
}

}  // namespace

std::string_view cut(std::string_view& rest, char separator) {
  const auto part = rest.substr(0, rest.find(separator));
  rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  return part;
}

std::uint64_t leading_number(std::string_view text, int radix) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, radix);
  return number;
}

std::optional<std::uint64_t> parse_byte_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const int shift = unit_shift(text.substr(static_cast<std::size_t>(end - text.data())));
  if (shift < 0 || (number << shift) >> shift != number) return std::nullopt;
  return number << shift;
}

}  // namespace pario::base
