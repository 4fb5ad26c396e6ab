// The note that describes the process of this log.
#include <sys/utsname.h>

#include <algorithm>

#include "core/trace/state.hpp"

extern char** environ;

namespace pario::trace {
namespace {

constexpr std::size_t kArgumentsRoom = 16 << 10;
constexpr std::size_t kLongestValue = 1024;
constexpr std::string_view kVariables[] = {"SLURM_", "PMI_",       "PMIX_",  "OMPI_COMM_",
                                           "OMP_",   "MPICH_",     "ROMIO_", "PARIO_",
                                           "HDF5_",  "LD_PRELOAD="};

bool is_selected(std::string_view variable) {
  return std::any_of(std::begin(kVariables), std::end(kVariables),
                     [&](std::string_view start) { return variable.starts_with(start); });
}

/// Reads the start of a small file, without the newline at its end.
std::string_view read_line(const char* path, std::span<char> buffer) {
  const long size = base::read_file(path, buffer.data(), buffer.size());
  const std::string_view text(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return text.substr(0, text.find('\n'));
}

void add_link(base::Json& json, const char* key, const char* path) {
  char target[kPage];
  if (base::read_link(path, target, sizeof target) > 0) json.member(key, target);
}

/// Adds the current directory; its link serves if it has no path any more.
void add_directory(base::Json& json) {
  char path[kPage];
  if (base::read_working_directory(path, sizeof path) > 0)
    json.member("cwd", path);
  else
    add_link(json, "cwd", "/proc/self/cwd");
}

/// Adds the words of the command; without arguments only the first one.
void add_command(base::Json& json, bool with_arguments) {
  char memory[kArgumentsRoom];
  const long size = base::read_file("/proc/self/cmdline", memory, sizeof memory);
  std::string_view rest(memory, size > 0 ? static_cast<std::size_t>(size) : 0);
  json.key("argv").begin_array();
  while (!rest.empty()) {
    json.value(base::cut(rest, '\0'));
    if (!with_arguments) break;
  }
  json.end_array();
}

void add_environment(base::Json& json) {
  json.key("env").begin_object();
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view variable = *at;
    const auto equals = variable.find('=');
    if (equals == variable.npos || !is_selected(variable)) continue;
    json.member(variable.substr(0, equals), variable.substr(equals + 1, kLongestValue));
  }
  json.end_object();
}

void write(base::TextBuffer& out, bool with_arguments, bool with_environment) {
  base::Json json(out);
  utsname host{};
  base::system_call(SYS_uname, &host);
  char boot[64];
  json.begin_object()
      .member("note", "process")
      .member("host", static_cast<const char*>(host.nodename));
  json.member("boot_id", read_line("/proc/sys/kernel/random/boot_id", boot));
  add_link(json, "exe", "/proc/self/exe");
  add_directory(json);
  json.member("user", base::system_call(SYS_getuid));
  add_command(json, with_arguments);
  if (with_environment) add_environment(json);
  json.end_object();
}

}  // namespace

void write_process_note(bool with_arguments) {
  std::byte* memory = base::map_memory(kLongestNote);
  if (memory == nullptr) return;
  base::TextBuffer text(reinterpret_cast<char*>(memory), kLongestNote);
  write(text, with_arguments, true);
  if (!text.complete()) {  // too large an environment
    text = base::TextBuffer(reinterpret_cast<char*>(memory), kLongestNote);
    write(text, with_arguments, false);
  }
  note(text.view());
  base::unmap(memory, kLongestNote);
}

}  // namespace pario::trace
