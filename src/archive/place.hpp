// Names beneath an open directory, of any length: what no single call takes is followed a part at a time.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <functional>
#include <string>

#include "base/base.hpp"

namespace pario::archive {

/// Names up to this are taken by every call, also behind the path of a descriptor.
inline constexpr std::size_t kLongestName = PATH_MAX - 64;
/// Longer ones are ENAMETOOLONG: each of their directories is looked for from the first one on.
inline constexpr std::size_t kLongestWay = 1 << 15;

/// Opens what has a name beneath an open directory, through no symbolic link that somebody has put in its way (where the kernel can look
/// after that); -1 and errno.
int open_beneath(int root, const std::string& name, int flags);

/// Opens a directory on the way to what `name` stands for; from there it is the rest, which `name` becomes. -1 and errno.
int open_on_the_way(int root, std::string& name);

/// What `call(directory, name)` answers: of these two, or, where the name is too long for a call, of a directory on its way and the rest.
template <class Call>
auto at_place(int root, const std::string& name, const Call& call) -> decltype(call(root, name.c_str())) {
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

/// For what takes no descriptor of a directory: `call` gets `path`, or a shorter one for the same, which is `name` beneath `root`. Errors
/// say `path`.
base::Status with_path(int root, const std::string& name, const std::string& path,
                       const std::function<base::Status(const std::string& path)>& call);

}  // namespace pario::archive
