#include "data/records/tree.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

namespace pario::records {

base::Result<std::vector<TreeFile>> files_of(const std::string& directory) {
  std::vector<TreeFile> out;
  std::error_code error;
  std::filesystem::recursive_directory_iterator at(directory, error);
  for (; !error && at != std::filesystem::recursive_directory_iterator(); at.increment(error)) {
    struct stat facts{};
    const bool there = ::stat(at->path().c_str(), &facts) == 0;
    if (!there && errno == ENOENT) continue;  // a link to nothing
    if (!there) return base::Error{.number = errno, .operation = "stat", .path = at->path()};
    if (!S_ISREG(facts.st_mode)) continue;
    const std::int64_t modified = base::to_nanoseconds(facts.st_mtim);
    out.push_back({at->path().lexically_relative(directory),
                   static_cast<std::uint64_t>(facts.st_size), facts.st_mode & 07777, modified});
  }
  if (error) return base::Error{.number = error.value(), .operation = "opendir", .path = directory};
  std::ranges::sort(out, {}, &TreeFile::name);
  return out;
}

}  // namespace pario::records
