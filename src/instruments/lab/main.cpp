// pario-lab DIRECTORY POINT [KEY=NUMBER ...]: mounts a lab that keeps its files in a directory.
// `pario lab up` starts it.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "instruments/lab/lab.hpp"
#include "instruments/lab/operations.hpp"

namespace pario::lab {
namespace {

constexpr unsigned kMostThreads = 512;  // one for each request that waits

struct Chosen {
  Settings settings;
  bool foreground = false;
};

/// A setting that a word KEY=NUMBER chooses, with the range of its number.
struct Setting {
  std::string_view key;
  void (*store)(Chosen& chosen, std::uint64_t value);
  std::uint64_t least = 0, most = std::numeric_limits<std::uint64_t>::max();
};

constexpr Setting kSettings[] = {
    {"targets",
     [](Chosen& chosen, std::uint64_t value) {
       chosen.settings.targets = static_cast<std::uint32_t>(value);
     },
     1, 256},
    {"rate", [](Chosen& chosen,
                std::uint64_t value) { chosen.settings.speed.rate = static_cast<double>(value); }},
    {"link", [](Chosen& chosen,
                std::uint64_t value) { chosen.settings.speed.link = static_cast<double>(value); }},
    {"latency", [](Chosen& chosen, std::uint64_t value) { chosen.settings.speed.latency = value; }},
    {"metadata", [](Chosen& chosen, std::uint64_t value) { chosen.settings.metadata = value; }},
    {"lock_handover",
     [](Chosen& chosen, std::uint64_t value) { chosen.settings.speed.lock_handover = value; }},
    {"in_flight",
     [](Chosen& chosen, std::uint64_t value) {
       chosen.settings.speed.in_flight = static_cast<std::uint32_t>(value);
     },
     0, 1024},
    {"ceph",
     [](Chosen& chosen, std::uint64_t value) {
       chosen.settings.personality = value != 0 ? Personality::ceph : Personality::lustre;
     }},
    {"process",
     [](Chosen& chosen, std::uint64_t value) {
       chosen.settings.client = value != 0 ? ClientKind::process : ClientKind::network;
     }},
    {"cache", [](Chosen& chosen, std::uint64_t value) { chosen.settings.cache = value != 0; }},
    {"foreground", [](Chosen& chosen, std::uint64_t value) { chosen.foreground = value != 0; }},
};

bool parse_number(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Applies a word KEY=NUMBER; false if there is no such setting, or its number is out of range.
bool apply_word(Chosen& chosen, std::string_view word) {
  const auto equals = word.find('=');
  std::uint64_t value = 0;
  if (equals == word.npos || !parse_number(word.substr(equals + 1), value)) return false;
  const auto* const setting = std::ranges::find(kSettings, word.substr(0, equals), &Setting::key);
  if (setting == std::end(kSettings) || value < setting->least || value > setting->most)
    return false;
  setting->store(chosen, value);
  return true;
}

int complain(const std::string& text) {
  std::fprintf(stderr, "pario-lab: %s\n", text.c_str());
  return 1;
}

void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Returns the options of the mount. Its source names the directory, by which `pario lab` finds a
/// lab that has died.
std::string mount_options(const std::string& directory) {
  char* options = nullptr;
  ::fuse_opt_add_opt(&options, "subtype=pario-lab");
  ::fuse_opt_add_opt(&options, "default_permissions");
  if (::geteuid() == 0) ::fuse_opt_add_opt(&options, "allow_other");
  ::fuse_opt_add_opt_escaped(&options, ("fsname=" + directory).c_str());
  std::string out = options != nullptr ? options : "";
  std::free(options);
  return out;
}

int serve(fuse* file_system, bool foreground) {
  if (::fuse_daemonize(foreground ? 1 : 0) != 0) return 1;
  if (::fuse_set_signal_handlers(::fuse_get_session(file_system)) != 0) return 1;
  fuse_loop_config* config = ::fuse_loop_cfg_create();
  ::fuse_loop_cfg_set_max_threads(config, kMostThreads);
  ::fuse_loop_cfg_set_idle_threads(config, kMostThreads);
  const int status = ::fuse_loop_mt(file_system, config);
  ::fuse_loop_cfg_destroy(config);
  ::fuse_remove_signal_handlers(::fuse_get_session(file_system));
  return status < 0 ? 1 : 0;
}

int mount(Lab& lab, const char* point, bool foreground) {
  std::string options = mount_options(lab.store.directory()), name = "pario-lab", flag = "-o";
  char* words[] = {name.data(), flag.data(), options.data(), nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(3, words);
  const fuse_operations all = operations();
  fuse* file_system = ::fuse_new(&arguments, &all, sizeof all, &lab);
  if (file_system == nullptr) return complain("libfuse refuses its options");
  int status = 1;
  if (::fuse_mount(file_system, point) == 0) {
    status = serve(file_system, foreground);
    ::fuse_unmount(file_system);
  }
  ::fuse_destroy(file_system);
  ::fuse_opt_free_args(&arguments);
  return status;
}

int run(std::span<char*> words) {
  Chosen chosen;
  if (words.size() < 2) return complain("usage: pario-lab DIRECTORY POINT [KEY=NUMBER ...]");
  for (const char* word : words.subspan(2))
    if (!apply_word(chosen, word))
      return complain(std::string("no such setting, or not in its range: ") + word);
  ::umask(0);
  allow_many_files();
  const std::unique_ptr<char, decltype(&std::free)> directory(::realpath(words[0], nullptr),
                                                              &std::free);
  if (!directory) return complain(std::string(words[0]) + ": " + std::strerror(errno));
  base::Result<Store> store = Store::open(directory.get(), chosen.settings.targets);
  if (!store.ok()) return complain(store.error().text());
  Lab lab(chosen.settings, std::move(*store));
  return mount(lab, words[1], chosen.foreground);
}

}  // namespace
}  // namespace pario::lab

int main(int count, char** words) {
  return pario::lab::run(std::span(words, static_cast<std::size_t>(count)).subspan(1));
}
