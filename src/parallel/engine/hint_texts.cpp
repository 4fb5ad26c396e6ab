#include "parallel/engine/hint_texts.hpp"

#include <sstream>

namespace pario::engine {

std::string format_hints(const hints::FileHints& hints) {
  std::string text;
  for (const hints::Setting& setting : hints::settings_of(hints))
    text += setting.key + "=" + setting.value + "\n";
  return text;
}

hints::FileHints parse_hints(const std::string& text) {
  hints::FileHints hints = hints::default_file_hints();
  std::istringstream lines(text);
  std::string reason;
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    static_cast<void>(hints::set(hints, {line.substr(0, equals), line.substr(equals + 1)}, reason));
  }
  return hints;
}

base::Status broadcast_hints(const FileContext& context, hints::FileHints& hints,
                             const char* call) {
  std::string text = context.is_first() ? format_hints(hints) : std::string();
  std::uint64_t size = text.size();
  if (base::Status status = context.broadcast(&size, sizeof size, call); !status) return status;
  text.resize(size);
  if (base::Status status = context.broadcast(text.data(), size, call); !status) return status;
  if (!context.is_first()) hints = parse_hints(text);
  return {};
}

}  // namespace pario::engine
