#include "data/archive/place.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstdint>

namespace pario::archive {
namespace {

/// The argument of openat2 (struct open_how of Linux 5.6; headers may be older).
struct How {
  std::uint64_t flags, mode, resolve;
};
constexpr long kOpenat2 = 437;
constexpr std::uint64_t kThroughNoLink = 4;

int open_short(int root, const char* name, int flags) {
  const int all = flags | O_NOFOLLOW | O_CLOEXEC;
  const How how = {.flags = static_cast<std::uint64_t>(all), .mode = 0, .resolve = kThroughNoLink};
  const long opened = base::system_call(kOpenat2, root, name, &how, sizeof how);
  // Old kernels do not have the call, and old sandboxes reject it with EPERM.
  if (opened == -ENOSYS || opened == -EPERM) return ::openat(root, name, all);
  if (opened < 0) errno = static_cast<int>(-opened);
  return static_cast<int>(std::max(opened, -1L));
}

/// Keeps the part of a name after a slash, or several: a name that starts with one is absolute.
void keep_behind(std::string& name, std::size_t slash) {
  const std::size_t begin = name.find_first_not_of('/', slash);
  if (begin == name.npos)
    name = ".";
  else
    name.erase(0, begin);
}

}  // namespace

int open_beneath(int root, const std::string& name, int flags) {
  return at_place(root, name, [&](int directory, const char* rest) {
    return open_short(directory, rest, flags);
  });
}

int open_on_the_way(int root, std::string& name) {
  if (name.size() > kLongestWay) {
    errno = ENAMETOOLONG;
    return -1;
  }
  int directory = root;
  while (directory >= 0 && name.size() > kLongestName) {
    const std::size_t slash = name.rfind('/', kLongestName);
    const std::string part = name.substr(0, slash);
    errno = ENAMETOOLONG;
    const int next =
        slash == name.npos ? -1 : open_short(directory, part.c_str(), O_PATH | O_DIRECTORY);
    const int number = errno;
    if (directory != root) ::close(directory);
    errno = number;
    directory = next;
    if (next >= 0) keep_behind(name, slash);
  }
  return directory;
}

base::Status with_path(int root, const std::string& name, const std::string& path,
                       const std::function<base::Status(const std::string&)>& call) {
  if (path.size() < PATH_MAX) return call(path);
  base::Status status;
  const auto shorter = [&](int directory, const char* rest) {
    status = call("/proc/self/fd/" + std::to_string(directory) + "/" + rest);
    return 0;
  };
  if (at_place(root, name, shorter) != 0)
    status = base::Error{.number = errno, .operation = "open"};
  if (status) return {};
  base::Error error = status.error();
  error.path = path;
  return error;
}

}  // namespace pario::archive
