// Names beneath an open directory, of any length: names too long for a single call are followed
// part by part.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <functional>
#include <string>

#include "core/base/base.hpp"

namespace pario::archive {

/// All calls accept names up to this length, also after the path of a descriptor.
inline constexpr std::size_t kLongestName = PATH_MAX - 64;
/// Longer names are ENAMETOOLONG, because all of their directories are looked up one by one.
inline constexpr std::size_t kLongestWay = 1 << 15;

/// Opens a name beneath an open directory and follows no symbolic link on the way (if the kernel
/// supports that); -1 and errno.
int open_beneath(int root, const std::string& name, int flags);

/// Opens a directory on the way to `name`, which becomes the rest of the name from there. -1 and
/// errno.
int open_on_the_way(int root, std::string& name);

/// Returns call(root, name), or, if the name is too long for a call, call(directory on the way,
/// rest of the name).
template <class Call>
auto at_place(int root, const std::string& name, const Call& call)
    -> decltype(call(root, name.c_str())) {
  if (name.size() <= kLongestName) return call(root, name.c_str());
  std::string rest = name;
  const int directory = open_on_the_way(root, rest);
  if (directory < 0) return -1;
  const auto answer = call(directory, rest.c_str());
  const int number = errno;
  ::close(directory);
  errno = number;
  return answer;
}

/// For calls without a directory descriptor: `call` gets `path`, or a shorter one for the same,
/// which is `name` beneath `root`. Errors say `path`.
base::Status with_path(int root, const std::string& name, const std::string& path,
                       const std::function<base::Status(const std::string& path)>& call);

}  // namespace pario::archive
