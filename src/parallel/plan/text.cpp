// A plan as one line of text, for logs and for the cases of the tests.
#include <iterator>

#include "parallel/plan/plan.hpp"

namespace pario::plan {
namespace {

constexpr const char* kDirections[] = {"read", "write"};
constexpr const char* kWays[] = {"nothing", "direct", "windows"};
constexpr const char* kHoles[] = {"none", "runs", "modify", "choose"};

template <std::size_t N, class Enum>
const char* name(const char* const (&names)[N], Enum value) {
  return names[static_cast<std::size_t>(value)];
}

/// Formats a size: 4194304 is "4M"; only whole units, so that no digit is lost.
std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"", "K", "M", "G"};
  std::size_t unit = 0;
  for (; bytes != 0 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return std::to_string(bytes) + kUnits[unit];
}

/// Formats neighbours as a range: "0-3,7".
std::string list_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t first = 0, next = 0; first < numbers.size(); first = next) {
    for (next = first + 1; next < numbers.size() && numbers[next] == numbers[next - 1] + 1;
         ++next) {
    }
    if (first > 0) text += ',';
    text += std::to_string(numbers[first]);
    if (next - first > 1) text += '-' + std::to_string(numbers[next - 1]);
  }
  return text;
}

}  // namespace

std::string Plan::text() const {
  std::string line = std::string(name(kWays, way));
  if (way == Way::nothing) return line;
  line += std::string(" ") + name(kDirections, direction) + " [" + std::to_string(span.begin) +
          ", " + std::to_string(span.end) + ")";
  if (way == Way::direct) return line;
  line += " in " + std::to_string(windows()) + " of " + size_text(window) + ", slots " +
          std::to_string(slots);
  line += ", nodes " + list_text(aggregators) + (cyclic ? " cyclic" : "");
  line += ", granule " + size_text(granule);
  if (direction == Direction::read) return line + (whole ? ", whole" : ", runs");
  return line + ", writers " + std::to_string(writers) + ", holes " + name(kHoles, holes);
}

}  // namespace pario::plan
