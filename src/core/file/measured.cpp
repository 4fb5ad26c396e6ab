#include "core/file/measured.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/base.hpp"

namespace pario::file {
namespace {

/// Removes the text up to the first `mark`, or all of it, and returns it without the mark.
std::string_view cut_at(std::string_view& text, char mark) {
  const auto end = text.find(mark);
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return part;
}

/// Removes a number and the colon after it; false if there is none.
template <std::integral T>
bool take_number(std::string_view& text, T& number) {
  const std::string_view digits = cut_at(text, ':');
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc{} && end == digits.data() + digits.size();
}

bool parse_sweep(std::string_view text, layout::MeasuredStripes& out, std::string_view& mount) {
  std::string_view numbers = cut_at(text, '=');
  mount = text;
  return take_number(numbers, out.size) && take_number(numbers, out.writers) &&
         take_number(numbers, out.striping.targets) && take_number(numbers, out.striping.unit) &&
         out.striping.targets != 0 && out.striping.unit != 0;
}

bool contains(std::string_view mount, int directory) {
  base::Text<PATH_MAX> path;
  path.add(mount);
  struct stat point, own;
  return path.complete() && base::status_of(path.c_str(), point) == 0 &&
         base::status_of(directory, own) == 0 && point.st_dev == own.st_dev;
}

}  // namespace

layout::Striping choose_striping(std::string_view sweeps, int directory,
                                 const layout::Expected& expected) {
  double least = std::numeric_limits<double>::infinity();
  layout::Striping best;
  while (!sweeps.empty()) {
    layout::MeasuredStripes measured;
    std::string_view mount;
    if (!parse_sweep(cut_at(sweeps, ','), measured, mount)) continue;
    const double difference = layout::compare_with(measured, expected);
    if (difference >= least || !contains(mount, directory)) continue;
    least = difference;
    best = measured.striping;
  }
  if (best.targets == 0) return layout::choose_stripes(expected).striping;
  if (expected.targets != 0) best.targets = std::min(best.targets, expected.targets);
  return best;
}

}  // namespace pario::file
