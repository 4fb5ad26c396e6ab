// The hints of a file: table, parsers, and the names of other MPI-IOs.
#include <algorithm>

#include "core/hints/hints.hpp"
#include "core/hints/values.hpp"

namespace pario::hints {
namespace {

constexpr HintInfo kFileTable[] = {
#define PARIO_FILE_HINT(key, kind, initial, least, most, aliases, when, meaning) \
  {#key, Type::kind, initial, least, most, aliases, meaning, When::when, "mpiio." #key},
#include "core/hints/file_hints.def"
#undef PARIO_FILE_HINT
#define PARIO_FILE_HINT(key, kind, initial, least, most, aliases, when, meaning) \
  {#key, Type::kind, initial, least, most, aliases, meaning, When::when, "striping." #key},
#include "core/hints/striping_hints.def"
#undef PARIO_FILE_HINT
};

struct Foreign {
  const char* key;
  const char* reason;
};
constexpr Foreign kForeign[] = {
#define PARIO_FOREIGN_HINT(key, reason) {key, reason},
#include "core/hints/foreign_hints.def"
#undef PARIO_FOREIGN_HINT
};

/// Finds a key; a foreign key that ends with a star matches all keys with that prefix.
const Foreign* find_foreign(std::string_view name) {
  const auto* found = std::ranges::find_if(
      kForeign, [&](const Foreign& row) { return glob_matches(row.key, name); });
  return found == std::end(kForeign) ? nullptr : found;
}

std::string text_of(Choice choice) { return word_of(choice); }
std::string text_of(std::uint64_t number) { return std::to_string(number); }
std::string text_of(std::chrono::milliseconds time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  std::string decimals = std::to_string(1000 + (time - whole).count()).substr(1);
  decimals.erase(decimals.find_last_not_of('0') + 1);
  return std::to_string(whole.count()) + (decimals.empty() ? "" : "." + decimals);
}
std::string text_of(bool flag) { return flag ? "yes" : "no"; }
std::string text_of(const std::string& text) { return text; }

std::string question(std::string_view name) {
  base::Text<128> text;
  add_question(text, kFileTable, name);
  return std::string(text.view());
}

std::string bad_value(const HintInfo& info, const Setting& setting) {
  base::Text<512> text;
  add_bad_value<FileHints>(text, info, setting.key, setting.value);
  return std::string(text.view());
}

/// Explains a key that is not in the table; true if another MPI-IO has it.
bool set_foreign(std::string_view key, std::string& reason) {
  const Foreign* foreign = find_foreign(key);
  reason = std::string(key);
  if (foreign)
    reason += " has no meaning here because " + std::string(foreign->reason);
  else
    reason = "unknown hint " + reason + question(trim(key));
  return foreign != nullptr;
}

}  // namespace

std::span<const HintInfo> file_table() { return kFileTable; }

#define PARIO_FILE_HINT(name, kind, initial, least, most, aliases, when, meaning) \
  if (std::string_view(info.key) == #name) return parse(info, value, hints.name);
bool assign(StripingHints& hints, const HintInfo& info, std::string_view value) {
#include "core/hints/striping_hints.def"
  return false;
}
bool assign(FileHints& hints, const HintInfo& info, std::string_view value) {
#include "core/hints/file_hints.def"
  return assign(static_cast<StripingHints&>(hints), info, value);
}
#undef PARIO_FILE_HINT

FileHints default_file_hints() { return defaults_of<FileHints>(kFileTable); }
StripingHints default_striping_hints() { return defaults_of<StripingHints>(kFileTable); }

bool striping_hints_of(std::string_view specifications, std::string_view path,
                       StripingHints& hints) {
  hints = default_striping_hints();
  bool found = false;
  while (auto parts = next_parts(specifications, path))
    while (!parts->empty()) {
      const Part part(cut(*parts, ':'));
      const HintInfo* info = find(kFileTable, part.key);
      found |= info != nullptr && assign(hints, *info, part.value);
    }
  return found;
}

bool name_striping(std::string_view specifications) {
  bool found = false;
  const auto look_for = [&](std::string_view name) {
    found = found || specifications.find(name) != specifications.npos;
  };
#define PARIO_FILE_HINT(key, kind, initial, least, most, aliases, when, meaning) \
  look_for(#key);                                                                \
  each_word(aliases, look_for);
#include "core/hints/striping_hints.def"
#undef PARIO_FILE_HINT
  return found;
}

bool set(FileHints& hints, const Setting& setting, std::string& reason) {
  reason.clear();
  const HintInfo* info = find(kFileTable, setting.key);
  if (info == nullptr) return set_foreign(setting.key, reason);
  if (assign(hints, *info, setting.value)) return true;
  reason = bad_value(*info, setting);
  return false;
}

FileHints hints_of_open_file(const FileHints& in_force, const FileHints& wanted) {
  FileHints hints = in_force;
#define PARIO_FILE_HINT(name, kind, initial, least, most, aliases, when, meaning) \
  if (When::when == When::anytime) hints.name = wanted.name;
#include "core/hints/file_hints.def"
#include "core/hints/striping_hints.def"
#undef PARIO_FILE_HINT
  return hints;
}

const HintInfo* find_file_hint(std::string_view key) { return find(kFileTable, key); }

std::string_view canonical(std::string_view key) {
  const HintInfo* info = find(kFileTable, key);
  return info == nullptr ? std::string_view() : info->key;
}

bool is_known_key(std::string_view key) {
  return find(kFileTable, key) != nullptr || find_foreign(key) != nullptr;
}

std::vector<Setting> settings_of(const FileHints& hints) {
  std::vector<Setting> settings;
#define PARIO_FILE_HINT(name, kind, initial, least, most, aliases, when, meaning) \
  settings.push_back({#name, text_of(hints.name)});
#include "core/hints/file_hints.def"
#include "core/hints/striping_hints.def"
#undef PARIO_FILE_HINT
  std::erase_if(settings, [](const Setting& setting) { return setting.value.empty(); });
  return settings;
}

std::vector<Setting> known_settings_of(const FileHints& hints) {
  const FileHints initial = default_file_hints();
  std::vector<Setting> settings = settings_of(hints);
  const auto erase = [&](std::string_view key) {
    std::erase_if(settings, [&](const Setting& setting) { return setting.key == key; });
  };
#define PARIO_FILE_HINT(name, kind, initially, least, most, aliases, when, meaning) \
  if (When::when == When::striping && hints.name == initial.name) erase(#name);
#include "core/hints/striping_hints.def"
#undef PARIO_FILE_HINT
  return settings;
}

}  // namespace pario::hints
