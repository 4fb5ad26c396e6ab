#include "core/hints/values.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace pario::hints {
namespace {

constexpr std::string_view kYes[] = {"1", "yes", "on", "true"};
constexpr std::string_view kNo[] = {"0", "no", "off", "false"};
constexpr std::string_view kChoices[] = {"automatic", "enable", "disable"};
constexpr std::string_view kModes[] = {"as_is", "full", "line", "none"};
constexpr std::string_view kReports[] = {"hints", "statistics", "timers", "all", "json"};
constexpr std::uint64_t kAnyTarget = 65535;
constexpr std::size_t kLongestWord = 63;

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool is_word(std::string_view word, std::string_view text) {
  return std::ranges::equal(word, text, [](char a, char b) { return a == lower(b); });
}

/// Returns the index of `text` in `words`; their number if it is missing.
std::size_t place_of(std::string_view text, std::span<const std::string_view> words) {
  const auto found =
      std::ranges::find_if(words, [&](std::string_view word) { return is_word(word, text); });
  return static_cast<std::size_t>(found - words.begin());
}

bool is_one_of(std::span<const std::string_view> words, std::string_view text) {
  return place_of(text, words) < words.size();
}

std::optional<std::uint64_t> plain_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_octal(std::string_view text) { return text.find_first_not_of("01234567") == text.npos; }

bool is_report(std::string_view text) {
  bool known = true;
  each_word(text, [&](std::string_view word) { known = known && is_one_of(kReports, word); });
  return known;
}

/// Returns the number of edits (insert, delete, replace) between two words; large for words of more
/// than 63 letters.
std::size_t distance(std::string_view a, std::string_view b) {
  if (a.size() > kLongestWord || b.size() > kLongestWord) return kLongestWord;
  std::size_t row[kLongestWord + 1] = {};
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = corner + (a[i - 1] != b[j - 1]);
      corner = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

const HintInfo* find(Table table, std::string_view name) {
  const auto has = [&](const HintInfo& info) {
    bool found = info.key == name;
    each_word(info.names, [&](std::string_view other) { found = found || other == name; });
    return found;
  };
  const auto found = std::ranges::find_if(table, has);
  return found == table.end() ? nullptr : &*found;
}

std::string_view nearest(Table table, std::string_view name) {
  std::string_view best;
  std::size_t far = 2 + name.size() / 4;  // edits; a word as far away is not meant
  const auto consider = [&](std::string_view candidate) {
    const std::size_t edits = distance(candidate, name);
    if (edits >= far) return;
    far = edits;
    best = candidate;
  };
  for (const HintInfo& info : table) {
    consider(info.key);
    each_word(info.names, consider);
  }
  return best;
}

void add_question(base::TextBuffer& out, Table table, std::string_view name) {
  if (const std::string_view meant = nearest(table, name); !meant.empty())
    out.add(": did you mean ").add(meant).add('?');
}

bool parse(const HintInfo& info, std::string_view text, std::uint64_t& value) {
  const bool any = info.most == kAnyTarget && text == "-1";  // as in Lustre's tools: all, any
  const auto number = any                        ? kAnyTarget
                      : info.type == Type::bytes ? base::parse_byte_size(text)
                                                 : plain_number(text);
  if (!number || *number < info.least || *number > info.most) return false;
  value = *number;
  return true;
}

/// Parses "60" or "0.25"; cuts off fractions of a millisecond.
bool parse(const HintInfo& info, std::string_view text, std::chrono::milliseconds& value) {
  const std::string_view whole = text.substr(0, text.find('.'));
  std::string_view decimals = text.substr(std::min(whole.size() + 1, text.size()));
  const auto seconds = plain_number(whole);
  if (!seconds || *seconds < info.least || *seconds > info.most) return false;
  if (text.ends_with('.') || decimals.find_first_not_of("0123456789") != decimals.npos)
    return false;
  std::uint64_t milliseconds = 0;
  for (std::size_t i = 0; i < 3; ++i)
    milliseconds = 10 * milliseconds + (i < decimals.size() ? decimals[i] - '0' : 0);
  value = std::chrono::seconds(*seconds) + std::chrono::milliseconds(milliseconds);
  return true;
}

bool parse(const HintInfo&, std::string_view text, bool& value) {
  const auto flag = flag_of(text);
  if (flag) value = *flag;
  return flag.has_value();
}

bool parse(const HintInfo& info, std::string_view text, TextValue& value) {
  if (text.size() < info.least || text.size() > std::min<std::uint64_t>(info.most, kTextRoom - 1))
    return false;
  std::memcpy(value.data, text.data(), text.size());
  value.data[text.size()] = 0;
  return true;
}

bool parse(const HintInfo&, std::string_view text, Choice& value) {
  const std::size_t place = place_of(text, kChoices);
  const auto flag = flag_of(text);
  if (place < std::size(kChoices))
    value = static_cast<Choice>(place);
  else if (flag)
    value = *flag ? Choice::enable : Choice::disable;
  return place < std::size(kChoices) || flag;
}

bool parse(const HintInfo&, std::string_view text, StdioMode& value) {
  const std::size_t place = place_of(text, kModes);
  if (place == std::size(kModes)) return false;
  value = static_cast<StdioMode>(place);
  return true;
}

bool parse(const HintInfo& info, std::string_view text, std::string& value) {
  if (text.size() < info.least || text.size() > info.most) return false;
  if (info.type == Type::octal ? !is_octal(text) : !is_report(text)) return false;
  value = text;
  return true;
}

void add_expected(base::TextBuffer& out, const HintInfo& info) {
  switch (info.type) {
    case Type::bytes:
    case Type::count:
      out.add(info.type == Type::bytes ? "a size such as 64K, 256M or 2G, from "
                                       : "a number from ");
      out.add(info.least).add(" to ").add(info.most);
      return;
    case Type::seconds:
      out.add("seconds such as 60 or 0.5, from ").add(info.least).add(" to ").add(info.most);
      return;
    case Type::text:
      out.add("a text of at most ").add(info.most).add(" characters");
      return;
    case Type::flag:
      out.add("yes or no");
      return;
    case Type::choice:
      out.add("automatic, enable or disable");
      return;
    case Type::mode:
      out.add("full, line, none or as_is");
      return;
    case Type::octal:
      out.add("octal digits");
      return;
    case Type::report:
      out.add("words of: hints statistics timers all json");
      return;
  }
}

const char* word_of(Choice choice) { return kChoices[static_cast<std::size_t>(choice)].data(); }

std::optional<bool> flag_of(std::string_view text) {
  if (is_one_of(kYes, text)) return true;
  if (is_one_of(kNo, text)) return false;
  return std::nullopt;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto first = text.find_first_not_of(kBlanks);
  return first == text.npos ? std::string_view()
                            : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// Matches with backtracking to the last star only: linear in practice, and without recursion.
bool glob_matches(std::string_view glob, std::string_view text) {
  std::size_t g = 0, t = 0, star = glob.npos, resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != glob.npos) {
      g = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return glob.substr(g).find_first_not_of('*') == glob.npos;
}

bool glob_means(std::string_view glob, std::string_view path) {
  if (path.starts_with('%') != glob.starts_with('%')) return false;
  if (glob_matches(glob, path)) return true;
  return glob.find('/') == glob.npos && glob_matches(glob, path.substr(path.rfind('/') + 1));
}

std::optional<std::string_view> next_parts(std::string_view& rest, std::string_view path) {
  while (!rest.empty()) {
    std::string_view parts = cut(rest, ',');
    const std::string_view glob = cut(parts, ':');
    if (!glob.empty() && glob_means(glob, path)) return parts;
  }
  return std::nullopt;
}

}  // namespace pario::hints
