#include "records/leftovers.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace pario::records {
namespace {

constexpr std::string_view kShared = ".pario-shuffle-";  // number, rank and output follow, with dots between them

}  // namespace

std::string shared_name(std::uint64_t number, std::uint64_t rank, std::string_view output) {
  return std::string(kShared) + std::to_string(number) + "." + std::to_string(rank) + "." + std::string(output);
}

bool is_shared_of(std::string_view name, std::string_view output) {
  if (!name.starts_with(kShared)) return false;
  const std::size_t rank = name.find('.', kShared.size()), behind = rank == std::string_view::npos ? rank : name.find('.', rank + 1);
  return behind != std::string_view::npos && name.substr(behind + 1) == output;
}

base::Result<Disk> open_held(const std::string& path, Caching caching) {
  for (;;) {
    base::Result<Disk> file = Disk::open(path, O_RDWR | O_CREAT | O_TRUNC, caching);
    if (!file.ok()) return file;
    hold(*file);
    struct stat facts{};
    if (::fstat(file->number(), &facts) != 0 || facts.st_nlink != 0) return file;  // 0: taken for a leftover before it was held
  }
}

void hold(const Disk& file) { ::flock(file.number(), LOCK_EX | LOCK_NB); }

void remove_leftovers(const std::string& directory, const std::function<bool(std::string_view)>& ours) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (!ours(at->path().filename().native())) continue;
    const base::Result<Disk> file = Disk::open(at->path(), O_RDWR | O_NOFOLLOW, Caching::page_cache);
    if (file.ok() && ::flock(file->number(), LOCK_EX | LOCK_NB) == 0) ::unlink(at->path().c_str());
  }
}

}  // namespace pario::records
