#include "core/comm/process.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "core/base/base.hpp"

namespace pario::comm {
namespace {

struct State {
  char letter = '?';
  std::uint64_t start = 0;
};

/// Fields 3 and 22 of /proc/<pid>/stat; they follow the name, which may hold any characters.
State parse(std::string_view text) {
  const auto name_end = text.rfind(')');
  if (name_end == text.npos || name_end + 2 >= text.size()) return {};
  text.remove_prefix(name_end + 2);
  State state{.letter = text[0]};
  for (int field = 3; field < 22; ++field)
    text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  state.start = base::leading_number(text);
  return state;
}

/// The error of reading it, or 0.
long look_up(std::uint64_t pid, State& state) {
  base::Text<64> path;
  path.add("/proc/").add(pid).add("/stat");
  char text[1024];
  const long size = base::read_file(path.c_str(), text, sizeof text);
  if (size < 0) return size;
  state = parse({text, static_cast<std::size_t>(size)});
  return 0;
}

std::uint64_t own_namespace() {
  struct stat status{};
  return base::status_of("/proc/self/ns/pid", status) == 0 ? status.st_ino : 0;
}

}  // namespace

Process Process::self() {
  Process process{.pid = static_cast<std::uint64_t>(getpid()), .numbered_by = own_namespace()};
  State state;
  if (look_up(process.pid, state) == 0) process.start = state.start;
  return process;
}

bool Process::is_numbered_here() const {
  static const std::uint64_t here = own_namespace();
  return numbered_by != 0 && numbered_by == here;
}

bool Process::alive() const {
  if (start == 0 || !is_numbered_here()) return true;
  State state;
  const long error = look_up(pid, state);
  if (error != 0) return error != -ENOENT && error != -ESRCH;
  return state.start == start && state.letter != 'Z' && state.letter != 'X';
}

}  // namespace pario::comm
