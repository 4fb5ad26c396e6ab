// The hints of a file from the environment: ROMIO's file of lines, Cray's and pario's
// specifications with globs, Cray's switches for reports.

#include "core/hints/hints.hpp"
#include "core/hints/values.hpp"

namespace pario::hints {
namespace {

constexpr std::size_t kMostRomioHints = 64 << 10;

struct Switch {
  const char* variable;
  const char* report;
};
constexpr Switch kReportSwitches[] = {
    {"MPICH_MPIIO_HINTS_DISPLAY", "hints"},
    {"MPICH_MPIIO_STATS", "statistics"},
    {"MPICH_MPIIO_TIMERS", "timers"},
};

/// Returns the value of a variable; empty if it is not set.
std::string_view variable(char* const* environment, std::string_view name) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return {};
}

std::string quote(std::string_view text) { return "\"" + std::string(text) + "\""; }

/// The settings of one path.
class Found {
 public:
  Found(std::string_view path, std::vector<Setting>& settings, std::vector<Rejected>& rejected)
      : path_(path), settings_(settings), rejected_(rejected) {}

  void specifications(std::string_view origin, std::string_view text) {
    while (!text.empty()) specification(origin, cut(text, ','));
  }
  void lines(std::string_view origin, std::string_view text) {
    while (!text.empty()) line(origin, trim(cut(text, '\n')));
  }
  void reject(std::string_view origin, std::string_view what, const std::string& reason) {
    rejected_.push_back(
        {{std::string(origin), std::string(what)}, std::string(origin) + ": " + reason});
  }

 private:
  /// Parses "glob:key=value:key=value".
  void specification(std::string_view origin, std::string_view text) {
    std::string_view rest = text;
    const auto glob = cut(rest, ':');
    const auto equals = glob.find('=');
    if (trim(text).empty()) return reject(origin, text, "an empty part between commas");
    if (equals != glob.npos && is_known_key(trim(glob.substr(0, equals))))
      return reject(
          origin, text,
          quote(text) + " names no file: did you mean " + quote("*:" + std::string(text)) + "?");
    if (trim(glob) != glob || glob.empty())
      return reject(
          origin, text,
          quote(text) +
              ": a pattern for file names was expected before the first colon, without blanks");
    if (rest.empty()) return reject(origin, text, quote(text) + ": no key=value after the pattern");
    if (!glob_means(glob, path_)) return;
    while (!rest.empty()) part(origin, cut(rest, ':'));
  }

  void part(std::string_view origin, std::string_view text) {
    const auto equals = text.find('=');
    const auto key = text.substr(0, equals);
    if (equals == text.npos || key.empty())
      return reject(origin, text, quote(text) + ": expected key=value");
    if (trim(key) != key)
      return reject(origin, text,
                    quote(text) + ": a blank too many: did you mean " + quote(trim(text)) + "?");
    settings_.push_back({std::string(key), std::string(text.substr(equals + 1))});
  }

  void line(std::string_view origin, std::string_view text) {
    if (text.empty() || text.front() == '#') return;
    const auto key = text.substr(0, text.find_first_of(" \t"));
    const auto value = trim(text.substr(key.size()));
    if (value.empty())
      return reject(origin, text, quote(text) + ": expected a key, a blank and a value");
    settings_.push_back({std::string(key), std::string(value)});
  }

  std::string_view path_;
  std::vector<Setting>& settings_;
  std::vector<Rejected>& rejected_;
};

void add_romio_file(std::string_view name, Found& found) {
  if (name.empty()) return;
  std::string text(kMostRomioHints, '\0');
  const long size = base::read_file(std::string(name).c_str(), text.data(), text.size());
  if (size < 0)
    return found.reject("ROMIO_HINTS", name,
                        std::string(name) + ": " + base::errno_name(static_cast<int>(-size)));
  if (static_cast<std::size_t>(size) == text.size())
    found.reject("ROMIO_HINTS", name, std::string(name) + ": only its first 64 KiB are read");
  found.lines("ROMIO_HINTS", std::string_view(text).substr(0, static_cast<std::size_t>(size)));
}

/// Adds the reports of Cray's switches to those already set.
void add_reports(char* const* environment, std::vector<Setting>& settings) {
  std::string report;
  for (const Setting& setting : settings)
    if (canonical(setting.key) == "pario_report") report = setting.value;
  bool changed = false;
  for (const Switch& one : kReportSwitches) {
    const auto value = variable(environment, one.variable);
    if (value.empty() || value == "0") continue;
    report += (report.empty() ? "" : " ") + std::string(one.report);
    changed = true;
  }
  if (changed) settings.push_back({"pario_report", report});
}

}  // namespace

std::vector<Setting> settings_from_environment(std::string_view path, char* const* environment,
                                               std::vector<Rejected>& rejected) {
  std::vector<Setting> settings;
  Found found(path, settings, rejected);
  add_romio_file(variable(environment, "ROMIO_HINTS"), found);
  found.specifications("MPICH_MPIIO_HINTS", variable(environment, "MPICH_MPIIO_HINTS"));
  found.specifications("PARIO_HINTS", variable(environment, "PARIO_HINTS"));
  add_reports(environment, settings);
  return settings;
}

}  // namespace pario::hints
