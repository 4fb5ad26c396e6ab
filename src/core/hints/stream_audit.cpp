// The outcome of the parameters of a buffered file, for the log.
#include <algorithm>

#include "core/hints/hints.hpp"
#include "core/hints/values.hpp"

namespace pario::hints {
namespace {

// Complaints of the check in progress.
constinit char complaint[512];
constinit std::size_t complaint_size = 0;

void store_complaint(std::string_view text) {
  text.remove_prefix(
      std::min(text.size(), std::string_view(": ").size()));  // after an empty origin
  complaint_size = text.copy(complaint, sizeof complaint);
}

/// Returns why a parameter was rejected; empty: it was accepted.
std::string_view refusal_of(std::string_view parameter) {
  complaint_size = 0;
  base::Text<512> specification;
  check_stream_specifications("", specification.add("*:").add(parameter).view(), store_complaint);
  return {complaint, complaint_size};
}

void add_text(base::TextBuffer& out, std::uint64_t value) { out.add(value); }
void add_text(base::TextBuffer& out, bool value) { out.add(value ? "yes" : "no"); }
void add_text(base::TextBuffer& out, StdioMode value) {
  constexpr const char* kWords[] = {"as_is", "full", "line", "none"};
  out.add(kWords[static_cast<std::size_t>(value)]);
}

/// Adds the value of a key as text; nothing for a key outside of the table.
void add_value(base::TextBuffer& out, const StreamHints& hints, std::string_view key) {
#define PARIO_STREAM_HINT(name, kind, initial, least, most, setting, risk, meaning) \
  if (key == #name) add_text(out, hints.name);
#include "core/hints/stream_hints.def"
#undef PARIO_STREAM_HINT
}

/// Adds the value of a key in the specification.
void add_applied(base::TextBuffer& out, std::string_view parameters, std::string_view key) {
  base::Text<kTextRoom> specification;
  StreamHints hints;
  if (stream_hints_of(specification.add("*:").add(parameters).view(), "", hints))
    add_value(out, hints, key);
}

void add_row(base::Json& json, std::string_view parameter, std::string_view applied,
             std::string_view effective, std::string_view why) {
  const Part part(parameter);
  json.begin_object()
      .member("key", part.key)
      .member("requested", part.key.size() < parameter.size() ? part.value : "yes");
  json.member("applied", applied).member("effective", effective).member("reason", why).end_object();
}

}  // namespace

std::string_view stream_specification_of(std::string_view specifications, std::string_view path) {
  while (!specifications.empty()) {
    const std::string_view specification = cut(specifications, ',');
    StreamHints unused;
    if (stream_hints_of(specification, path, unused)) return specification;
  }
  return {};
}

void add_stream_audit(base::Json& json, std::string_view parameters, const StreamHints& effective,
                      std::span<const StreamException> exceptions) {
  for (std::string_view rest = parameters; !rest.empty();) {
    const std::string_view parameter = cut(rest, ':');
    const std::string_view key = Part(parameter).key;
    base::Text<64> applied, in_force;
    if (const std::string_view refused = refusal_of(parameter); !refused.empty()) {
      add_row(json, parameter, {}, {}, refused);
      continue;
    }
    add_applied(applied, parameters, key);
    if (applied.view().empty()) {
      add_row(json, parameter, {}, {}, "known, but without a meaning here");
      continue;
    }
    add_value(in_force, effective, key);
    const auto found = std::ranges::find_if(
        exceptions, [&](const auto& one) { return one.key.empty() || one.key == key; });
    if (found == exceptions.end())
      add_row(json, parameter, applied.view(), in_force.view(), {});
    else
      add_row(json, parameter, applied.view(), found->effective, found->reason);
  }
}

}  // namespace pario::hints
