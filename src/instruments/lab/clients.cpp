#include <unistd.h>

#include <charconv>
#include <fstream>

#include "instruments/lab/lab.hpp"

namespace pario::lab {
namespace {

Client number_behind(std::string_view text, std::string_view lead) {
  Client number = 0;
  const auto at = text.find(lead);
  if (at != text.npos)
    std::from_chars(text.data() + at + lead.size(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Client client_of(ClientKind kind, pid_t thread) {
  if (thread == 0) return 0;
  const std::string place = "/proc/" + std::to_string(thread);
  if (kind == ClientKind::network) {
    char target[64];  // net:[4026531840]
    const ssize_t size = ::readlink((place + "/ns/net").c_str(), target, sizeof target);
    return size > 0 ? number_behind({target, static_cast<std::size_t>(size)}, "net:[") : 0;
  }
  std::ifstream status(place + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Tgid:")) return number_behind(line, "Tgid:\t");
  return 0;
}

}  // namespace pario::lab
