#include <algorithm>

#include "engine/report.hpp"

namespace pario::engine {
namespace {

std::string value_of(const hints::FileHints& hints, std::string_view key) {
  for (hints::Setting& setting : hints::settings_of(hints))
    if (setting.key == key) return std::move(setting.value);
  return {};
}

bool is_striping(std::string_view key) { return key == "striping_unit" || key == "striping_factor" || key == "start_iodevice"; }

HintOutcome taken(const hints::Setting& setting, const OpenRequest& request, const hints::FileHints& effective,
                  const std::string& striping_reason) {
  HintOutcome out{.key = setting.key, .requested = setting.value};
  const std::string key(hints::canonical(setting.key));
  hints::FileHints alone = request.hints;
  std::string reason;
  hints::set(alone, setting, reason);
  if (!reason.empty()) return out.reason = reason, out;  // not taken, or of another MPI-IO
  out.applied = value_of(request.hints, key);
  out.effective = value_of(effective, key);
  if (out.effective.empty())
    out.reason = "known, but without a meaning here";
  else if (value_of(alone, key) != out.applied)
    out.reason = "another setting of the same hint came later";
  else if (is_striping(key))
    out.reason = striping_reason;
  else if (key == "pario_subfiles" && out.effective != out.applied)
    out.reason = "the file existed already";
  else if (out.effective != out.applied)
    out.reason = "changed after the file was opened";
  return out;
}

}  // namespace

std::vector<HintOutcome> audit_of(const OpenRequest& request, const hints::FileHints& effective, const std::string& striping_reason) {
  std::vector<HintOutcome> lines;
  for (const hints::Setting& setting : request.requested) {
    const bool refused = std::ranges::any_of(
        request.rejected, [&](const auto& other) { return other.setting.key == setting.key && other.setting.value == setting.value; });
    if (!refused) lines.push_back(taken(setting, request, effective, striping_reason));
  }
  for (const hints::Rejected& rejected : request.rejected)
    lines.push_back({.key = rejected.setting.key, .requested = rejected.setting.value, .reason = rejected.reason});
  return lines;
}

}  // namespace pario::engine
