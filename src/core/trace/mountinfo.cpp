#include "core/trace/mountinfo.hpp"

#include <sys/sysmacros.h>

#include "core/base/base.hpp"

namespace pario::trace {
namespace {

std::string_view next_word(std::string_view& rest) { return base::cut(rest, ' '); }

std::uint64_t device_number(std::string_view word) {
  const auto colon = word.find(':');
  if (colon == word.npos) return 0;
  return makedev(static_cast<unsigned>(base::leading_number(word.substr(0, colon))),
                 static_cast<unsigned>(base::leading_number(word.substr(colon + 1))));
}

}  // namespace

// "36 35 98:0 /root /mount rw,noatime master:1 - type source options"
std::optional<Mount> parse_mount(std::string_view line) {
  const auto dash = line.find(" - ");
  if (dash == line.npos) return std::nullopt;
  std::string_view left = line.substr(0, dash), right = line.substr(dash + 3);
  Mount mount;
  mount.id = base::leading_number(next_word(left));
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
    const auto mount = parse_mount(base::cut(mountinfo, '\n'));
    if (mount && (id != 0 ? mount->id == id : mount->device == device)) found = mount;
  }
  return found;
}

}  // namespace pario::trace
