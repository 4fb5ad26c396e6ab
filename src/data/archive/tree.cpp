#include "data/archive/tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>

#include "data/archive/errors.hpp"
#include "data/archive/header.hpp"
#include "data/archive/place.hpp"

namespace pario::archive {
namespace {

/// Names in one directory; those of directories in a list of their own.
struct Listing {
  std::vector<std::string> names;
  std::vector<std::string> directories;
};

bool is_directory(int directory, const dirent& found) {
  if (found.d_type != DT_UNKNOWN) return found.d_type == DT_DIR;
  struct stat facts{};
  return ::fstatat(directory, found.d_name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(facts.st_mode);
}

base::Status list(int root, const std::string& directory, const std::string& name, Listing& out) {
  const std::string path = path_of(directory, name);
  const int descriptor = open_beneath(root, name, O_RDONLY | O_DIRECTORY);
  DIR* stream = descriptor < 0 ? nullptr : ::fdopendir(descriptor);
  if (stream == nullptr) {
    const base::Status status = base::path_error("opendir", path);
    if (descriptor >= 0) ::close(descriptor);
    return status;
  }
  errno = 0;
  for (const dirent* found = ::readdir(stream); found != nullptr; found = ::readdir(stream)) {
    const std::string_view part = found->d_name;
    if (part == "." || part == "..") continue;
    std::string whole = name == "." ? std::string(part) : name + "/" + std::string(part);
    if (is_directory(descriptor, *found)) out.directories.push_back(whole);
    out.names.push_back(std::move(whole));
    errno = 0;
  }
  const base::Status status = errno == 0 ? base::Status{} : base::path_error("readdir", path);
  ::closedir(stream);
  return status;
}

/// Finds the extents between the holes; the whole file if the file system does not report holes.
base::Status find_data(int root, const std::string& path, Entry& entry) {
  const int descriptor = open_beneath(root, entry.name, O_RDONLY | O_NONBLOCK);
  if (descriptor < 0) return base::path_error("open", path);
  entry.data.clear();
  for (std::uint64_t at = 0; at < entry.size;) {
    const off_t begin = ::lseek(descriptor, static_cast<off_t>(at), SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;  // a hole until the end
    const off_t end = begin < 0 ? begin : ::lseek(descriptor, begin, SEEK_HOLE);
    const base::Extent data =
        end < 0 ? base::Extent{at, entry.size}
                : base::Extent{static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end)};
    entry.data.push_back(base::intersection(data, {0, entry.size}));
    at = std::max(data.end, at + 1);
  }
  ::close(descriptor);
  // >= because the map may have one more piece, for the end.
  if (entry.data.size() >= kMostPieces) entry.data = {{0, entry.size}};
  entry.sparse = entry.data_size() != entry.size;
  return {};
}

base::Status read_target(int root, const std::string& path, Entry& entry) {
  char target[PATH_MAX];
  const ssize_t size = at_place(root, entry.name, [&](int directory, const char* name) {
    return ::readlinkat(directory, name, target, sizeof target);
  });
  if (size < 0) return base::path_error("readlink", path);
  entry.target.assign(target, static_cast<std::size_t>(size));
  return {};
}

/// The time of modification in nanoseconds; of a time after 2262 or before 1677, which they cannot
/// hold, the nearest one.
std::int64_t time_of(const struct stat& facts) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 1'000'000'000 - 1;
  timespec time = facts.st_mtim;
  time.tv_sec = std::clamp<std::int64_t>(time.tv_sec, -kMost, kMost);
  return base::to_nanoseconds(time);
}

void take(Entry& entry, const struct stat& facts) {
  entry.mode = facts.st_mode;
  entry.user = facts.st_uid;
  entry.group = facts.st_gid;
  entry.size = S_ISREG(facts.st_mode) ? static_cast<std::uint64_t>(facts.st_size) : 0;
  entry.modified = time_of(facts);
  entry.device = facts.st_dev;
  entry.number = facts.st_ino;
  entry.links = facts.st_nlink;
  entry.special = facts.st_rdev;
}

base::Status look(int root, const std::string& directory, Entry& entry) {
  struct stat facts{};
  const std::string path = path_of(directory, entry.name);
  const auto stat = [&](int at, const char* name) {
    return ::fstatat(at, name, &facts, AT_SYMLINK_NOFOLLOW);
  };
  if (at_place(root, entry.name, stat) != 0) return base::path_error("stat", path);
  take(entry, facts);
  if (S_ISLNK(facts.st_mode)) return read_target(root, path, entry);
  if (entry.size == 0) return {};
  entry.data = {{0, entry.size}};
  const bool holes = static_cast<std::uint64_t>(facts.st_blocks) * 512 < entry.size;
  return holes ? find_data(root, path, entry) : base::Status{};
}

/// Lists the names of all entries but the directory itself, one depth at a time.
base::Status list_all(int root, const std::string& directory, unsigned threads,
                      records::Meter& meter, std::vector<std::string>& out) {
  std::vector<std::string> level = {"."};
  std::mutex mutex;
  while (!level.empty()) {
    Listing below;
    std::atomic<std::size_t> next = 0;
    const auto work = [&](unsigned) -> base::Status {
      Listing mine;
      for (std::size_t i = next++; i < level.size() && !meter.is_stopped(); i = next++)
        if (base::Status status = list(root, directory, level[i], mine); !status) return status;
      const std::scoped_lock lock(mutex);
      std::ranges::move(mine.names, std::back_inserter(out));
      std::ranges::move(mine.directories, std::back_inserter(below.directories));
      return {};
    };
    const auto workers = static_cast<unsigned>(std::min<std::size_t>(threads, level.size()));
    if (base::Status status = records::run_team(workers, meter, work); !status) return status;
    level = std::move(below.directories);
  }
  return {};
}

/// Makes entries in the order of their names. Sorts the names, because entries are large.
std::vector<Entry> entries_of(std::vector<std::string> names) {
  std::ranges::sort(names);
  std::vector<Entry> out;
  out.reserve(names.size() + 1);
  out.push_back({.name = "."});
  for (std::string& name : names) out.push_back({.name = std::move(name)});
  return out;
}

/// Reads the metadata of all entries, with several threads.
base::Status look_at_all(int root, const std::string& directory, unsigned threads,
                         records::Meter& meter, std::vector<Entry>& entries) {
  constexpr std::size_t kSome = 256;
  std::atomic<std::size_t> next = 0;
  const auto work = [&](unsigned) -> base::Status {
    for (std::size_t first = next.fetch_add(kSome); first < entries.size() && !meter.is_stopped();
         first = next.fetch_add(kSome))
      for (std::size_t i = first; i < std::min(first + kSome, entries.size()); ++i)
        if (base::Status status = look(root, directory, entries[i]); !status) return status;
    return {};
  };
  return records::run_team(threads, meter, work);
}

/// Marks hard links: the first of several names of a file has its bytes.
void find_links(std::vector<Entry>& entries) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, const Entry*> seen;
  for (Entry& entry : entries) {
    if (entry.is_directory() || entry.links < 2) continue;
    const auto [first, is_new] = seen.try_emplace({entry.device, entry.number}, &entry);
    if (is_new) continue;
    entry.linked = true;
    entry.target = first->second->name;
    entry.size = 0;
    entry.data.clear();
    entry.sparse = false;
  }
}

}  // namespace

bool Entry::is_directory() const { return S_ISDIR(mode); }
bool Entry::is_file() const { return S_ISREG(mode) && !linked; }

std::uint64_t Entry::data_size() const {
  std::uint64_t sum = 0;
  for (const base::Extent& extent : data) sum += extent.length();
  return sum;
}

std::string path_of(const std::string& directory, const std::string& name) {
  return name == "." ? directory : directory + "/" + name;
}

base::Result<std::vector<Entry>> entries_of(const std::string& directory, unsigned threads,
                                            records::Meter& meter) {
  const int root =
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);  // a link may name it
  if (root < 0) return base::path_error("open", directory);
  std::vector<std::string> names;
  base::Status status = list_all(root, directory, threads, meter, names);
  std::vector<Entry> out = entries_of(std::move(names));
  if (status) status = look_at_all(root, directory, threads, meter, out);
  ::close(root);
  if (!status) return status.error();
  std::erase_if(out, [](const Entry& entry) { return S_ISSOCK(entry.mode); });
  find_links(out);
  return out;
}

bool has_changed(const Entry& entry, int descriptor) {
  struct stat facts{};
  if (::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) return true;
  const bool same = facts.st_ino == entry.number && facts.st_dev == entry.device;
  return !same || static_cast<std::uint64_t>(facts.st_size) != entry.size ||
         time_of(facts) != entry.modified;
}

}  // namespace pario::archive
