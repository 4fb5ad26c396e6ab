#include "parallel/mpiio/info.hpp"

#include <unistd.h>

#include "parallel/mpiio/guarded.hpp"
#include "parallel/mpiio/implementations.hpp"
#include "parallel/mpiio/library.hpp"

namespace pario::mpiio {
namespace {

std::vector<hints::Setting> settings_of_info(Word info) {
  std::vector<hints::Setting> settings;
  lib().for_each_setting(
      info, [&](const char* key, const char* value) { settings.push_back({key, value}); });
  return settings;
}

void add_settings(Hints& hints, const std::vector<hints::Setting>& settings) {
  for (const auto& setting : settings) {
    std::string reason;
    hints.requested.push_back(setting);
    if (!hints::set(hints.values, setting, reason)) hints.rejected.push_back({setting, reason});
  }
}

/// Adds the settings of an Info, and on top of them those of the environment.
void add_all_settings(Hints& hints, const std::vector<hints::Setting>& of_info,
                      const std::string& path) {
  add_settings(hints, of_info);
  add_settings(hints, hints::settings_from_environment(path, environ, hints.rejected));
}

/// Makes the Info of the hints in force, unless the file has it: a copy of an Info costs a quarter
/// of the time. False: none can be made.
bool renew_info(OpenFile& file) {
  const std::uint64_t policy = file.shared->policy_number();
  if (file.info != 0 && file.info_of == policy) return true;
  release_info(file);
  if (lib().info_create(&file.info) != 0) return false;
  for (const auto& [key, value] : hints::known_settings_of(file.shared->hints()))
    lib().info_set(file.info, key.c_str(), value.c_str());
  lib().info_set(file.info, "romio_visibility_immediate",
                 file.shared->visible_at_once() ? "true" : "false");
  file.info_of = policy;
  return true;
}

}  // namespace

Hints hints_on_top(const hints::FileHints& before, const std::string& path, Word info) {
  Hints result{.values = before};
  const std::vector<hints::Setting> settings = settings_of_info(info);
  if (!settings.empty()) add_all_settings(result, settings, path);
  return result;
}

Hints hints_for(const std::string& path, Word info) {
  Hints result{.values = hints::default_file_hints()};
  add_all_settings(result, settings_of_info(info), path);
  return result;
}

Outcome check(const Hints& hints, const Call& call) {
  if (!hints.values.pario_strict || hints.rejected.empty()) return {};
  return refuse(k(MPI_ERR_INFO_VALUE), call, hints.rejected.front().reason);
}

Word set_info(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    const Hints hints = hints_on_top(file.shared->hints(), file.path, call[1]);
    const Outcome outcome = agree(call, file, check(hints, call));
    return outcome.ok() ? outcome_of(file.shared->set_hints(hints.values)) : outcome;
  });
}

void release_info(OpenFile& file) {
  if (file.info != 0) lib().info_free(&file.info);
  file.info = 0;
}

Word get_info(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    const std::lock_guard lock(file.mutex);
    Word copy = 0;
    if (!renew_info(file) || lib().info_dup(file.info, &copy) != 0)
      return refuse(k(MPI_ERR_INFO), call, "no MPI_Info can be made");
    lib().set_handle_at(call[1], 0, copy);
    return {};
  });
}

}  // namespace pario::mpiio
