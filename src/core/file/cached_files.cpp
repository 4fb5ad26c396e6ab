#include "core/file/cached_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "core/base/base.hpp"

namespace pario::file {

namespace fs = std::filesystem;

std::vector<CachedFile> list_cached_files(const std::string& directory, std::string_view suffix) {
  std::vector<CachedFile> found;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    struct stat facts{};
    const std::string path = at->path();
    if (path.ends_with(suffix) && ::stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode))
      found.push_back(
          {path, static_cast<std::uint64_t>(facts.st_size), base::to_nanoseconds(facts.st_mtim)});
  }
  return found;
}

std::uint64_t sum_of_bytes(const std::vector<CachedFile>& files) {
  std::uint64_t sum = 0;
  for (const CachedFile& file : files) sum += file.bytes;
  return sum;
}

std::uint64_t remove_least_recently_used(std::vector<CachedFile> files, std::uint64_t most) {
  std::uint64_t sum = sum_of_bytes(files);
  std::ranges::sort(files, {}, &CachedFile::used);
  for (const CachedFile& file : files) {
    if (sum <= most) break;
    if (::unlink(file.path.c_str()) == 0 || errno == ENOENT) sum -= file.bytes;
  }
  return sum;
}

bool is_older(std::int64_t time, std::int64_t age) {
  return static_cast<std::int64_t>(base::realtime_ns()) - time > age;
}

void note_use(const std::string& path, std::int64_t interval) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) == 0 && is_older(base::to_nanoseconds(facts.st_mtim), interval))
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
}

}  // namespace pario::file
