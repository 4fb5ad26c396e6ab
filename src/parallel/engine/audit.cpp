#include <algorithm>

#include "parallel/engine/report.hpp"

namespace pario::engine {
namespace {

std::string value_of(const hints::FileHints& hints, std::string_view key) {
  for (hints::Setting& setting : hints::settings_of(hints))
    if (setting.key == key) return std::move(setting.value);
  return {};
}

/// Explains why the values of a known hint differ; empty: they are equal.
std::string explain(const hints::HintInfo& hint, const HintOutcome& outcome,
                    const std::string& striping_reason) {
  if (outcome.effective == outcome.applied) return {};
  if (hint.when == hints::When::striping) return striping_reason;
  return hint.when == hints::When::at_creation ? "the file existed already"
                                               : "changed after the file was opened";
}

/// Corrects the effective value of a hint that sets a limit which no collective call reached.
void compare_with_use(HintOutcome& outcome, std::uint64_t applied, std::uint64_t used,
                      const char* why) {
  if (used == 0 || used >= applied) return;
  outcome.effective = std::to_string(used);
  outcome.reason = why;
}

HintOutcome audit_setting(const hints::Setting& setting, const OpenRequest& request,
                          const hints::FileHints& effective, const std::string& striping_reason,
                          const UsedWindows& used) {
  HintOutcome outcome{.key = setting.key, .requested = setting.value};
  hints::FileHints alone = request.hints;
  hints::set(alone, setting, outcome.reason);
  if (!outcome.reason.empty()) return outcome;  // rejected, or a key of another MPI-IO
  const hints::HintInfo* hint = hints::find_file_hint(setting.key);
  if (hint != nullptr) {
    outcome.applied = value_of(request.hints, hint->key);
    outcome.effective = value_of(effective, hint->key);
  }
  if (outcome.effective.empty())
    outcome.reason = "known, but without a meaning here";
  else if (value_of(alone, hint->key) != outcome.applied)
    outcome.reason = "another setting of the same hint came later";
  else
    outcome.reason = explain(*hint, outcome, striping_reason);
  if (hint != nullptr && outcome.reason.empty() && hint->key == "cb_nodes")
    compare_with_use(outcome, effective.cb_nodes, used.nodes,
                     "no collective call had more nodes, or windows for more nodes");
  if (hint != nullptr && outcome.reason.empty() && hint->key == "cb_buffer_size")
    compare_with_use(outcome, effective.cb_buffer_size, used.bytes,
                     "larger windows would leave ranks of a node without one");
  return outcome;
}

}  // namespace

std::vector<HintOutcome> make_audit(const OpenRequest& request, const hints::FileHints& effective,
                                    const std::string& striping_reason, const UsedWindows& used) {
  std::vector<HintOutcome> lines;
  for (const hints::Setting& setting : request.requested) {
    const bool rejected = std::ranges::any_of(request.rejected, [&](const auto& other) {
      return other.setting.key == setting.key && other.setting.value == setting.value;
    });
    if (!rejected)
      lines.push_back(audit_setting(setting, request, effective, striping_reason, used));
  }
  for (const hints::Rejected& rejected : request.rejected)
    lines.push_back({.key = rejected.setting.key,
                     .requested = rejected.setting.value,
                     .reason = rejected.reason});
  return lines;
}

}  // namespace pario::engine
