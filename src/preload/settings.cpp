#include "preload/settings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstring>

#include "base/base.hpp"
#include "hints/hints.hpp"

namespace pario::preload::settings {
namespace {

constinit hints::HintSet chosen{};
constinit char directory[PATH_MAX]{};  // absolute: the program may go elsewhere
constinit std::size_t directory_size = 0;

constinit char complaint[1024]{};  // the first one: the log, that receives it, is not open yet

void keep_complaint(std::string_view text) {
  if (complaint[0] == '\0') complaint[text.copy(complaint, sizeof complaint - 1)] = '\0';
}

bool is_log(std::string_view path) {
  return path.size() > directory_size && path[directory_size] == '/' && path.starts_with(std::string_view(directory, directory_size));
}

}  // namespace

bool read(trace::Config& config) {
  chosen = hints::defaults();
  hints::read_environment(chosen, environ, keep_complaint);
  if (chosen.trace_dir.view().empty()) return false;
  const base::Path path(AT_FDCWD, chosen.trace_dir.data);
  if (!path.known()) return false;
  directory_size = path.view().size();
  std::memcpy(directory, path.view().data(), directory_size + 1);
  config = {.directory = directory,
            .events_limit = chosen.trace_events_limit,
            .files_limit = chosen.trace_files_limit,
            .messages = chosen.trace_messages,
            .arguments = chosen.trace_arguments};
  return true;
}

std::string_view complaints() { return complaint; }

bool excluded(std::string_view path) { return is_log(path) || hints::matches(chosen.trace_exclude.view(), path); }

}  // namespace pario::preload::settings
