#include "observe/preload/settings.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <climits>
#include <cstring>

#include "core/base/base.hpp"
#include "core/hints/hints.hpp"

namespace pario::preload::settings {
namespace {

constinit hints::HintSet chosen{};
constinit char directory[PATH_MAX]{};  // absolute, because the program may change its directory
constinit std::size_t directory_size = 0;

constinit char error_text[1024]{};  // the first one; the log is not open yet

void keep_error(std::string_view text) {
  if (error_text[0] == '\0') error_text[text.copy(error_text, sizeof error_text - 1)] = '\0';
}

bool is_log(std::string_view path) {
  return path.size() > directory_size && path[directory_size] == '/' &&
         path.starts_with(std::string_view(directory, directory_size));
}

}  // namespace

bool read(trace::Config& config) {
  chosen = hints::defaults();
  hints::read_environment(chosen, environ, keep_error);
  if (chosen.trace_dir.view().empty()) return false;
  const base::Path path(AT_FDCWD, chosen.trace_dir.data);
  if (!path.is_known()) return false;
  directory_size = path.view().size();
  std::memcpy(directory, path.view().data(), directory_size + 1);
  config = {.directory = directory,
            .events_limit = chosen.trace_events_limit,
            .files_limit = chosen.trace_files_limit,
            .messages = chosen.trace_messages,
            .sites = chosen.trace_sites,
            .arguments = chosen.trace_arguments};
  return true;
}

std::string_view errors() { return error_text; }

bool is_excluded(std::string_view path) {
  return is_log(path) || hints::matches(chosen.trace_exclude.view(), path);
}

}  // namespace pario::preload::settings
