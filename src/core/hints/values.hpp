// Functions for all tables of options: parsing of values, lookup of names, suggestions for wrong
// names. No heap, except for texts of any length (octal, report).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/base.hpp"
#include "core/hints/hints.hpp"

namespace pario::hints {

using Table = std::span<const HintInfo>;

/// Returns the row of a key or alias; null: none.
const HintInfo* find(Table table, std::string_view name);
/// Returns the key or alias that is nearest to `name`; empty: none is near.
std::string_view nearest(Table table, std::string_view name);
/// Adds ": did you mean x?" if a name is near.
void add_question(base::TextBuffer& out, Table table, std::string_view name);

/// Parses a value of the type and range of the row. On failure returns false and leaves `value`
/// unchanged.
bool parse(const HintInfo& info, std::string_view text, std::uint64_t& value);
bool parse(const HintInfo& info, std::string_view text, std::chrono::milliseconds& value);
bool parse(const HintInfo& info, std::string_view text, bool& value);
bool parse(const HintInfo& info, std::string_view text, TextValue& value);
bool parse(const HintInfo& info, std::string_view text, Choice& value);
bool parse(const HintInfo& info, std::string_view text, StdioMode& value);
bool parse(const HintInfo& info, std::string_view text, std::string& value);
/// Adds the expected values: "a size such as 64K, 256M or 2G, from 1 to 2", "yes or no", ...
void add_expected(base::TextBuffer& out, const HintInfo& info);
const char* word_of(Choice choice);

/// Sets the member of a row; false for a bad value.
bool assign(HintSet& hints, const HintInfo& info, std::string_view value);
bool assign(StripingHints& hints, const HintInfo& info, std::string_view value);
bool assign(FileHints& hints, const HintInfo& info, std::string_view value);
bool assign(StreamHints& hints, const HintInfo& info, std::string_view value);

template <class Hints>
Hints defaults_of(Table table) {
  Hints hints{};
  for (const HintInfo& info : table) assign(hints, info, info.initial);
  return hints;
}

/// Adds "name=value: expected ...", or a suggestion.
template <class Hints>
void add_bad_value(base::TextBuffer& out, const HintInfo& info, std::string_view name,
                   std::string_view value);

/// Parses "yes", "on", "true", "1" and their opposites, in letters of any case.
std::optional<bool> flag_of(std::string_view text);

/// Returns the text without blanks at its ends.
std::string_view trim(std::string_view text);

using base::cut;

/// Calls `take` with each word of a text separated by blanks.
template <class Take>
void each_word(std::string_view text, Take take) {
  while (!text.empty())
    if (const auto word = cut(text, ' '); !word.empty()) take(word);
}

/// A parameter: key=value, or a key alone.
struct Part {
  explicit Part(std::string_view text) : key(text.substr(0, text.find('='))) {
    if (key.size() < text.size()) value = text.substr(key.size() + 1);
  }
  std::string_view key, value = {};
};

/// Matches a glob: `*` stands for any characters (also '/'), `?` for one.
bool glob_matches(std::string_view glob, std::string_view text);
/// Matches a glob and a path: a glob without a directory matches the last part of the path, too.
/// Only globs that begin with '%' match such names.
bool glob_means(std::string_view glob, std::string_view path);

/// Removes specifications ("glob:part:part,glob2:...") from `rest` up to the first that selects the
/// path; returns its parts, or nothing.
std::optional<std::string_view> next_parts(std::string_view& rest, std::string_view path);

// ---- implementation

template <class Hints>
void add_bad_value(base::TextBuffer& out, const HintInfo& info, std::string_view name,
                   std::string_view value) {
  Hints unused{};
  const std::string_view meant = trim(value);
  out.add(name).add('=').add(value.substr(0, 200)).add(": ");
  if (meant != value && assign(unused, info, meant)) {
    out.add("a blank too many: did you mean ").add(name).add('=').add(meant).add('?');
  } else {
    out.add("expected ");
    add_expected(out, info);
  }
}

}  // namespace pario::hints
