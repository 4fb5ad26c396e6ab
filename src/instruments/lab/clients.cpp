#include <unistd.h>

#include <fstream>

#include "core/base/base.hpp"
#include "instruments/lab/lab.hpp"

namespace pario::lab {
namespace {

Client number_behind(std::string_view text, std::string_view lead) {
  const auto at = text.find(lead);
  return at == text.npos ? 0 : base::leading_number(text.substr(at + lead.size()));
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
