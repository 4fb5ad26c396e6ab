// The parameters of buffered files: Cray's IOBUF_PARAMS, and pario's variable with the same
// grammar.
#include <algorithm>

#include "core/hints/hints.hpp"
#include "core/hints/values.hpp"

namespace pario::hints {
namespace {

constexpr HintInfo kStreamTable[] = {
#define PARIO_STREAM_HINT(key, kind, initial, least, most, setting, risk, meaning) \
  {#key, Type::kind, initial, least, most, "", meaning, When::at_open, setting, Risk::risk},
#include "core/hints/stream_hints.def"
#undef PARIO_STREAM_HINT
};

/// Parameters of IOBUF without a meaning here.
constexpr std::string_view kForeignToStreams[] = {"preflush", "vbuffer_count"};

constexpr std::string_view kStandardStreams[] = {"%stdin", "%stdout", "%stderr"};

bool takes_value(const HintInfo& info) { return info.type != Type::flag; }

/// Sets a parameter; a flag without a value means yes.
bool assign(StreamHints& hints, const HintInfo& info, const Part& part) {
  return assign(hints, info, part.value.empty() && !takes_value(info) ? "yes" : part.value);
}

bool looks_like_a_size(std::string_view text) { return base::parse_byte_size(text).has_value(); }

/// Checks the parts of one variable.
class Check {
 public:
  Check(std::string_view origin, Complain complain) : origin_(origin), complain_(complain) {}

  void specification(std::string_view text) {
    std::string_view rest = text;
    const std::string_view glob = cut(rest, ':');
    if (check_glob(glob, text))
      while (!rest.empty()) parameter(cut(rest, ':'));
  }

 private:
  bool check_glob(std::string_view glob, std::string_view whole) {
    if (trim(glob).empty())
      return say(whole, "a pattern for file names was expected before the first colon"), false;
    if (trim(glob) != glob) return say(glob, "a blank too many: did you mean ", trim(glob)), false;
    if (glob.starts_with("%%"))
      return say(glob, "names no stream: did you mean ", glob.substr(1)), false;
    if (glob.starts_with('%') &&
        std::ranges::find(kStandardStreams, glob) == std::end(kStandardStreams))
      return say(glob, "names no stream: expected %stdin, %stdout or %stderr"), false;
    if (find(kStreamTable, Part(glob).key) != nullptr && glob.find('=') != glob.npos)
      return say(glob,
                 "names no file: did you mean a colon in front of it instead of a comma, or *:",
                 glob),
             false;
    if (looks_like_a_size(glob))
      return say(glob, "names no file: did you mean *:size=", glob), false;
    return true;
  }

  void parameter(std::string_view text) {
    const Part part(text);
    const HintInfo* info = find(kStreamTable, part.key);
    if (info == nullptr) return unknown(text, part);
    StreamHints scratch{};
    if (takes_value(*info) && part.value.empty())
      return say(text, "a value was expected: ", info->key, "=...");
    if (assign(scratch, *info, part)) return;
    if (trim(part.value) != part.value) return say(text, "a blank too many behind ", part.key, "=");
    base::Text<256> expected;
    add_expected(expected, *info);
    say(text, "expected ", expected.view());
  }

  void unknown(std::string_view text, const Part& part) {
    if (std::ranges::find(kForeignToStreams, part.key) != std::end(kForeignToStreams)) return;
    if (text.empty()) return say(text, "two colons, or one at the end");
    if (trim(part.key) != part.key) return say(text, "a blank too many: did you mean ", trim(text));
    if (looks_like_a_size(part.key)) return say(text, "did you mean size=", part.key);
    base::Text<256> question;
    add_question(question, kStreamTable, part.key);
    say(text, "unknown", question.view());
  }

  template <class... More>
  void say(std::string_view part, More... more) {
    base::Text<512> text;
    text.add(origin_).add(": \"").add(part.substr(0, 120)).add("\": ");
    (text.add(std::string_view(more)), ...);
    complain_(text.view());
  }

  std::string_view origin_;
  Complain complain_;
};

}  // namespace

std::span<const HintInfo> stream_table() { return kStreamTable; }

bool assign(StreamHints& hints, const HintInfo& info, std::string_view value) {
#define PARIO_STREAM_HINT(name, kind, initial, least, most, setting, risk, meaning) \
  if (std::string_view(info.key) == #name) return parse(info, value, hints.name);
#include "core/hints/stream_hints.def"
#undef PARIO_STREAM_HINT
  return false;
}

StreamHints default_stream_hints() { return defaults_of<StreamHints>(kStreamTable); }

bool stream_hints_of(std::string_view specifications, std::string_view path, StreamHints& hints) {
  auto parts = next_parts(specifications, path);
  if (!parts) return false;
  hints = default_stream_hints();
  while (!parts->empty()) {
    const Part part(cut(*parts, ':'));
    if (const HintInfo* info = find(kStreamTable, part.key)) assign(hints, *info, part);
  }
  return true;
}

void check_stream_specifications(std::string_view origin, std::string_view specifications,
                                 Complain complain) {
  Check check(origin, complain);
  while (!specifications.empty()) check.specification(cut(specifications, ','));
}

}  // namespace pario::hints
