#include "core/hints/hints.hpp"

#include <unistd.h>

#include <algorithm>

#include "core/hints/values.hpp"

namespace pario::hints {
namespace {

constexpr HintInfo kTable[] = {
#define PARIO_HINT(key, kind, initial, least, most, variable, setting, meaning) \
  {#key, Type::kind, initial, least, most, variable, meaning, When::at_open, setting},
#include "core/hints/hints.def"
#undef PARIO_HINT
};

/// The variables of the rows, with their lengths: each process compares all its environment.
constexpr std::string_view kVariables[] = {
#define PARIO_HINT(key, kind, initial, least, most, variable, setting, meaning) variable,
#include "core/hints/hints.def"
#undef PARIO_HINT
};

void add_unknown(base::TextBuffer& out, std::string_view name) {
  out.add("unknown option ").add(name);
  add_question(out, kTable, name);
}

/// Returns the row of a variable; null: none.
const HintInfo* find_variable(std::string_view name) {
  const auto* found = std::ranges::find(kVariables, name);
  return found == std::end(kVariables) ? nullptr : &kTable[found - kVariables];
}

/// `info`: the row of the variable `name`; null: none has it.
void apply_variable(HintSet& hints, const HintInfo* info, std::string_view name,
                    std::string_view value, Complain complain) {
  base::Text<512> error;
  if (info == nullptr)
    add_unknown(error, name);
  else if (!assign(hints, *info, value))
    add_bad_value<HintSet>(error, *info, name, value);
  if (!error.view().empty()) complain(error.view());
}

}  // namespace

std::span<const HintInfo> table() { return kTable; }

bool assign(HintSet& hints, const HintInfo& info, std::string_view value) {
#define PARIO_HINT(name, kind, initial, least, most, variable, setting, meaning) \
  if (std::string_view(info.key) == #name) return parse(info, value, hints.name);
#include "core/hints/hints.def"
#undef PARIO_HINT
  return false;
}

HintSet defaults() { return defaults_of<HintSet>(kTable); }

bool set(HintSet& hints, std::string_view key, std::string_view value, base::TextBuffer& error) {
  const HintInfo* info = find(kTable, key);
  if (info == nullptr) {
    add_unknown(error, key);
    return false;
  }
  if (assign(hints, *info, value)) return true;
  add_bad_value<HintSet>(error, *info, key, value);
  return false;
}

void read_environment(HintSet& hints, char* const* environment, Complain complain) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const Part part(variable);
    if (part.key.size() == variable.size()) continue;
    const HintInfo* info = find_variable(part.key);
    if (info != nullptr || part.key.starts_with("PARIO_TRACE_"))
      apply_variable(hints, info, part.key, part.value, complain);
  }
}

const HintSet& of_process() {
  static const HintSet chosen = [] {
    HintSet hints = defaults();
    read_environment(hints, environ, [](std::string_view) {});
    return hints;
  }();
  return chosen;
}

bool matches(std::string_view globs, std::string_view path) {
  while (!globs.empty()) {
    std::string_view glob = cut(globs, ':');
    const bool meant = !glob.starts_with('!');
    if (!meant) glob.remove_prefix(1);
    if (!glob.empty() && glob_matches(glob, path)) return meant;
  }
  return false;
}

}  // namespace pario::hints
