#include "layers/handles/names.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include <cstring>
#include <string_view>

#include "layers/handles/name_watch.hpp"

namespace pario::handles {
namespace {

// Within it, a watched name without a change is not checked: directories may have got other
// permissions.
constexpr std::uint64_t kTrustedNs = 100'000'000;

std::optional<Name> find_name(int directory, const char* path) {
  if (path == nullptr || pario_in_vfork_child != 0 || base::Unbuffered::active()) return {};
  const std::string_view text(path, strnlen(path, kLongestPath));
  if (text.empty() || text.size() >= kLongestPath || text.ends_with('/')) return {};
  if (text[0] == '/') return Name{text};
  if (directory != AT_FDCWD) return {};
  const base::Path absolute(directory, path);
  return absolute.is_known() ? std::optional(Name{text, base::xxh64(absolute.view()) | 1})
                             : std::nullopt;
}

/// Reads the identity and the permissions of a file, as far as this host knows them: other nodes
/// are not asked, and NFS does not send written bytes.
bool look_up(const char* path, struct stat& found) {
  constexpr unsigned kMask = STATX_TYPE | STATX_MODE | STATX_UID | STATX_GID | STATX_INO;
  struct statx state;
  if (base::extended_status_of(AT_FDCWD, path, AT_STATX_DONT_SYNC, kMask, state) < 0)
    return base::status_of(path, found) >= 0;
  found.st_dev = makedev(state.stx_dev_major, state.stx_dev_minor);
  found.st_ino = state.stx_ino;
  found.st_mode = state.stx_mode;
  found.st_uid = state.stx_uid;
  found.st_gid = state.stx_gid;
  return true;
}

/// Watches the name of an entry, unless that has failed before.
void watch_name(Entry& entry) {
  if (entry.unwatched) return;
  entry.epoch = name_watch::watch(entry.descriptor, base::Path(AT_FDCWD, entry.path).view());
  entry.unwatched = entry.epoch == 0;
}

}  // namespace

std::optional<Name> name_of(int directory, const char* path, int flags) {
  constexpr int kOnce = O_CREAT | O_TRUNC | O_NOCTTY;  // act only once
  if ((flags & (O_EXCL | O_DIRECTORY | O_PATH)) != 0) return {};
  auto name = find_name(directory, path);
  if (name) name->flags = flags & ~kOnce;
  return name;
}

std::optional<Name> name_of(const char* path, const char* mode) {
  const std::string_view text(mode == nullptr ? "" : mode);
  if (text.empty() || text.size() >= kLongestMode || text.find_first_not_of("rwab+e") != text.npos)
    return {};
  auto name = find_name(AT_FDCWD, path);
  if (name) name->mode = text;
  return name;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_mode == b.st_mode &&
         a.st_uid == b.st_uid && a.st_gid == b.st_gid;
}

bool is_current(Entry& entry) {
  const std::uint64_t now = base::monotonic_ns();
  const bool unchanged = !entry.unwatched && name_watch::is_unchanged(entry.epoch);
  if (unchanged && now - entry.checked < kTrustedNs) return true;
  if (!unchanged) watch_name(entry);
  struct stat found;
  if (!look_up(entry.path, found) || !is_same(entry.file, found)) return false;
  entry.checked = now;
  return true;
}

}  // namespace pario::handles
