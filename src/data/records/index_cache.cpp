#include "data/records/index_cache.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "core/file/cached_files.hpp"
#include "data/records/formats.hpp"
#include "data/records/index_files.hpp"
#include "data/records/output.hpp"

namespace pario::records {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMost = 4ULL << 30;  // bytes of all entries
constexpr auto kNap =
    std::chrono::milliseconds(20);  // between two checks for the entry of another process
constexpr std::uint64_t kPatience = 600'000'000'000;      // nanoseconds to wait for another process
constexpr std::int64_t kBetweenUses = 3'600'000'000'000;  // nanoseconds between two noted uses

const char* variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::string hexadecimal(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

/// The beginning of the names of all entries of a file and a format.
base::Result<std::string> prefix_of(const std::string& path, std::optional<Kind> kind) {
  std::error_code error;
  const std::string canonical = file::is_url(path) ? path : fs::canonical(path, error).string();
  if (error) return base::Error{.number = error.value(), .operation = "realpath", .path = path};
  return hexadecimal(base::xxh64(canonical)) + "-" + (kind ? format_of(*kind).name : "index") + "-";
}

base::Result<std::string> name_of(const std::string& path, std::optional<Kind> kind) {
  base::Result<std::string> prefix = prefix_of(path, kind);
  if (!prefix.ok()) return prefix;
  const base::Result<FileFacts> facts = facts_of(path);
  if (!facts.ok()) return facts.error();
  const std::uint64_t state[] = {facts->size, static_cast<std::uint64_t>(facts->modified),
                                 facts->identity};
  return *prefix + hexadecimal(base::xxh64(state, sizeof state)) + ".pidx";
}

std::uint64_t most_bytes() {
  const char* text = variable("PARIO_CACHE_SIZE");
  return text == nullptr ? kMost : base::parse_byte_size(text).value_or(kMost);
}

/// Removes older entries of the same file, then the least recently used ones.
void make_room(const std::string& kept, const std::string& prefix) {
  const std::string directory = cache_directory();
  std::vector<file::CachedFile> others = file::list_cached_files(directory, "");
  std::uint64_t most = most_bytes();
  std::erase_if(others, [&](const file::CachedFile& entry) {
    const bool stale = entry.path != kept && entry.path.ends_with(".pidx") &&
                       entry.path.starts_with(directory + "/" + prefix);
    if (stale) ::unlink(entry.path.c_str());
    if (entry.path == kept) most -= std::min(most, entry.bytes);
    return stale || entry.path == kept;
  });
  file::remove_least_recently_used(std::move(others), most);
}

base::Result<std::string> make_directory() {
  const std::string directory = cache_directory();
  if (directory.empty())
    return base::Error{.number = ENOENT,
                       .operation = "cache of indexes",
                       .detail = "none of PARIO_CACHE, XDG_CACHE_HOME and HOME is set"};
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return base::Error{.number = error.value(), .operation = "mkdir", .path = directory};
  return directory;
}

/// A lock by which one process at a time searches a file.
class SearchLock {
 public:
  /// Takes the lock. EWOULDBLOCK: another process has it. Always succeeds on a file system without
  /// locks.
  static base::Result<SearchLock> take(const std::string& path) {
    SearchLock lock(path, ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (lock.number_ < 0) return base::Error{.number = errno, .operation = "open", .path = path};
    if (::flock(lock.number_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return lock;
    lock.path_.clear();
    return base::Error{.number = EWOULDBLOCK, .operation = "flock", .path = path};
  }
  SearchLock(SearchLock&& other) noexcept
      : path_(std::move(other.path_)), number_(std::exchange(other.number_, -1)) {
    other.path_.clear();
  }
  SearchLock& operator=(SearchLock&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(number_, other.number_);
    return *this;
  }
  ~SearchLock() {
    if (number_ >= 0 && !path_.empty()) ::unlink(path_.c_str());
    if (number_ >= 0) ::close(number_);
  }

 private:
  SearchLock(std::string path, int number) : path_(std::move(path)), number_(number) {}
  std::string path_;  ///< empty: another process made the file and removes it
  int number_;
};

base::Result<std::string> lock_path_of(const IndexRequest& request) {
  const base::Result<std::string> directory = make_directory();
  const base::Result<std::string> prefix = prefix_of(request.path, request.kind);
  if (!directory.ok() || !prefix.ok()) return directory.ok() ? prefix : directory;
  return *directory + "/" + *prefix + "search.lock";
}

/// Waits until this process may search, also after an Error of the cache. True: the work was
/// stopped.
bool wait_for_turn(const IndexRequest& request, const std::string& lock_path,
                   base::Result<SearchLock>& lock, const Show& show) {
  const std::uint64_t begin = base::monotonic_ns();
  while (!lock.ok() && lock.error().number == EWOULDBLOCK &&
         base::monotonic_ns() - begin < kPatience) {
    if (show && !show(0, 0)) return true;
    std::this_thread::sleep_for(kNap);
    const base::Result<std::string> entry = cached_index_path(request.path, request.kind);
    if (entry.ok() && ::access(entry->c_str(), F_OK) == 0) return false;
    lock = SearchLock::take(lock_path);
  }
  return false;
}

base::Result<FoundIndex> search_and_keep(const IndexRequest& request, base::Status cache,
                                         const Show& show) {
  auto image = make_index(request, show);
  if (!image.ok()) return image.error();
  if (cache && request.damaged != OnDamage::ignore)
    cache = write_cached_index(request.path, request.kind, *image).status();
  base::Result<Index> index = Index::read(std::move(*image), request.path);
  return index.ok() ? base::Result<FoundIndex>({std::move(*index), std::move(cache)})
                    : index.error();
}

}  // namespace

std::string cache_directory() {
  if (const char* own = variable("PARIO_CACHE")) return std::string(own) + "/indexes";
  if (const char* all = variable("XDG_CACHE_HOME")) return std::string(all) + "/pario/indexes";
  const char* home = variable("HOME");
  return home == nullptr ? "" : std::string(home) + "/.cache/pario/indexes";
}

base::Result<std::string> cached_index_path(const std::string& path, std::optional<Kind> kind) {
  const base::Result<std::string> name = name_of(path, kind);
  return name.ok() ? cache_directory() + "/" + *name : name;
}

base::Result<Index> open_cached_index(const std::string& path, std::optional<Kind> kind) {
  const base::Result<std::string> entry = cached_index_path(path, kind);
  if (!entry.ok()) return entry.error();
  base::Result<Index> index = Index::open(*entry);
  const bool whole = index.ok() && index->verify_sections() && (!kind || index->kind() == *kind) &&
                     compare_with_file(*index, path);
  if (!whole) return base::Error{.number = ENOENT, .operation = "open index", .path = *entry};
  file::note_use(*entry, kBetweenUses);
  return index;
}

base::Result<std::string> write_cached_index(const std::string& path, std::optional<Kind> kind,
                                             std::span<const std::byte> image) {
  base::Result<std::string> directory = make_directory(), entry = cached_index_path(path, kind),
                            prefix = prefix_of(path, kind);
  for (const auto* each : {&directory, &entry, &prefix})
    if (!each->ok()) return *each;
  if (image.size() > most_bytes())
    return base::Error{.number = EFBIG,
                       .operation = "write",
                       .path = *entry,
                       .detail = "the index has " + std::to_string(image.size()) +
                                 " bytes, PARIO_CACHE_SIZE allows fewer"};
  if (base::Status status = write_whole(*entry, image); !status) return status.error();
  make_room(*entry, *prefix);
  return entry;
}

base::Result<FoundIndex> find_index(const IndexRequest& request, const Show& show) {
  if (base::Result<Index> index = open_cached_index(request.path, request.kind); index.ok())
    return FoundIndex{std::move(*index), {}};
  const base::Result<std::string> lock_path = lock_path_of(request);
  if (!lock_path.ok()) return search_and_keep(request, lock_path.error(), show);
  base::Result<SearchLock> lock = SearchLock::take(*lock_path);
  if (wait_for_turn(request, *lock_path, lock, show))
    return base::Error{.number = ECANCELED, .operation = "records", .detail = "stopped"};
  if (base::Result<Index> index = open_cached_index(request.path, request.kind); index.ok())
    return FoundIndex{std::move(*index), {}};
  const bool writable = lock.ok() || lock.error().number == EWOULDBLOCK;
  return search_and_keep(request, writable ? base::Status() : lock.error(), show);
}

}  // namespace pario::records
