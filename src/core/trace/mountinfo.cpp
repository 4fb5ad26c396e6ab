#include "core/trace/mountinfo.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>

namespace pario::trace {
namespace {

std::string_view next_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  return word;
}

std::uint64_t number(std::string_view word) {
  std::uint64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

std::uint64_t device_number(std::string_view word) {
  const auto colon = word.find(':');
  if (colon == word.npos) return 0;
  return makedev(static_cast<unsigned>(number(word.substr(0, colon))),
                 static_cast<unsigned>(number(word.substr(colon + 1))));
}

}  // namespace

// "36 35 98:0 /root /mount rw,noatime master:1 - type source options"
std::optional<Mount> parse_mount(std::string_view line) {
  const auto dash = line.find(" - ");
  if (dash == line.npos) return std::nullopt;
  std::string_view left = line.substr(0, dash), right = line.substr(dash + 3);
  Mount mount;
  mount.id = number(next_word(left));
  next_word(left);  // parent
  mount.device = device_number(next_word(left));
  next_word(left);  // root
  mount.mount = next_word(left);
  mount.type = next_word(right);
  mount.source = next_word(right);
  return mount;
}

std::optional<Mount> find_mount(std::string_view mountinfo, std::uint64_t id,
                                std::uint64_t device) {
  std::optional<Mount> found;
  while (!mountinfo.empty()) {
    const std::string_view line = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(line.size() + 1, mountinfo.size()));
    const auto mount = parse_mount(line);
    if (mount && (id != 0 ? mount->id == id : mount->device == device)) found = mount;
  }
  return found;
}

}  // namespace pario::trace
