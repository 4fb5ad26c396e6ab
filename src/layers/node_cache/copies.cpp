#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/base.hpp"
#include "layers/node_cache/node_cache.hpp"
#include "layers/node_cache/records.hpp"
#include "layers/node_cache/store.hpp"

namespace pario::node_cache {
namespace {

constexpr std::size_t kPieceBytes = 8 << 20;
constexpr std::size_t kSmallPieceBytes = 16 << 10;
constexpr std::size_t kMostNames = 20'000;  // of a listing

constexpr std::string_view kAhead = "ahead";

bool has_state_of(const struct stat& one, const struct stat& other) {
  return one.st_size == other.st_size && one.st_mtim.tv_sec == other.st_mtim.tv_sec &&
         one.st_mtim.tv_nsec == other.st_mtim.tv_nsec;
}

/// Copies bytes at the positions of both files, where sendfile cannot.
long move_small_piece(int from, int to) {
  char room[kSmallPieceBytes];
  const long size = base::system_call(SYS_read, from, room, sizeof room);
  return size <= 0 ? size : base::system_call(SYS_write, to, room, size);
}

/// Copies the bytes of a file, and its times and permissions.
bool copy_bytes(int from, int to, const struct stat& status) {
  for (auto left = static_cast<std::size_t>(status.st_size); left > 0;) {
    long moved = base::system_call(SYS_sendfile, to, from, nullptr, std::min(left, kPieceBytes));
    if (moved == -EINVAL) moved = move_small_piece(from, to);
    if (moved <= 0) return false;
    left -= static_cast<std::size_t>(moved);
  }
  struct stat after{};
  const timespec times[] = {status.st_atim, status.st_mtim};
  return base::status_of(from, after) == 0 && has_state_of(after, status) &&
         base::system_call(SYS_fchmod, to, status.st_mode & 0777) >= 0 &&
         base::system_call(SYS_utimensat, to, nullptr, times, 0) >= 0;
}

/// Copies a file whose facts `is_wanted` accepts to a new file.
template <class Accept>
bool copy_file(std::string_view name, const char* to, const Accept& is_wanted) {
  base::Text<PATH_MAX> path;
  const int source = base::open_file(path.add(name).c_str(), O_RDONLY | O_CLOEXEC);
  if (source < 0) return false;
  struct stat opened{};
  const bool wanted = base::status_of(source, opened) == 0 && is_wanted(opened);
  const int target =
      wanted ? base::open_file(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
  const bool done = target >= 0 && copy_bytes(source, target, opened);
  if (target >= 0) base::close_file(target);
  base::close_file(source);
  return done;
}

/// Gives a complete file or directory its name; removes it if that has a newer one.
bool publish(const char* temporary, const char* place) {
  return base::system_call(SYS_renameat2, AT_FDCWD, temporary, AT_FDCWD, place, 0) >= 0;
}

bool make_name(int directory, const char* name, unsigned char type) {
  if (type == DT_DIR) return base::system_call(SYS_mkdirat, directory, name, 0700) >= 0;
  if (type == DT_LNK) return base::system_call(SYS_symlinkat, "link", directory, name) >= 0;
  return type == DT_REG && base::system_call(SYS_mknodat, directory, name, S_IFREG | 0600, 0) >= 0;
}

bool is_dots(const char* name) {
  return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
}

/// Makes the names of a directory in an empty one; false if one has a type that the copy cannot
/// have.
bool copy_names(int from, int to) {
  alignas(8) char room[16 << 10];
  std::size_t names = 0;
  for (;;) {
    const long size = base::read_entries(from, room, sizeof room);
    if (size <= 0) return size == 0;
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(room + at);
      at += entry->d_reclen;
      if (is_dots(entry->d_name)) continue;
      if (++names > kMostNames || !make_name(to, entry->d_name, entry->d_type)) return false;
    }
  }
}

bool copy_directory(std::string_view name, const char* to) {
  base::Text<PATH_MAX> path;
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
  const int source = base::open_file(path.add(name).c_str(), flags);
  if (source < 0) return false;
  const bool made = base::system_call(SYS_mkdirat, AT_FDCWD, to, 0700) >= 0;
  const int target = made ? base::open_file(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  const bool done = target >= 0 && copy_names(source, target);
  if (target >= 0) base::close_file(target);
  base::close_file(source);
  return done;
}

bool exists(const char* path, struct stat& status) { return base::status_of(path, status) == 0; }

}  // namespace

bool find_copy(std::string_view name, const Facts& facts, base::TextBuffer& copy) {
  store::add_place(copy, "copies", name);
  struct stat found{};
  if (exists(copy.c_str(), found)) return has_state_of(found, facts.status);
  const store::Lock lock(name);
  if (exists(copy.c_str(), found)) return has_state_of(found, facts.status);
  if (!store::has_space_for(static_cast<std::uint64_t>(facts.status.st_size))) return false;
  base::Text<PATH_MAX> temporary;
  store::add_temporary(temporary, "copies");
  const auto is_same = [&facts](const struct stat& opened) {
    return has_state_of(opened, facts.status) && opened.st_ino == facts.status.st_ino;
  };
  if (copy_file(name, temporary.c_str(), is_same) && publish(temporary.c_str(), copy.c_str()))
    return true;
  base::system_call(SYS_unlinkat, AT_FDCWD, temporary.c_str(), 0);
  return false;
}

bool find_listing(const Name& name, base::TextBuffer& listing) {
  store::add_place(listing, "lists", name.view());
  struct stat found{};
  if (exists(listing.c_str(), found)) return true;
  const store::Lock lock(name.view());
  if (exists(listing.c_str(), found)) return true;
  base::Text<PATH_MAX> temporary;
  store::add_temporary(temporary, "lists");
  return copy_directory(name.view(), temporary.c_str()) &&
         publish(temporary.c_str(), listing.c_str());
}

std::uint64_t copy_ahead(std::string_view name, std::uint64_t most) {
  base::Text<PATH_MAX> temporary, copy, mark;
  store::add_place(mark, kAhead, store::parent_of(name));
  base::system_call(SYS_symlinkat, "directory", AT_FDCWD, mark.c_str());
  store::add_temporary(temporary, kAhead);
  store::add_place(copy, kAhead, name);
  std::uint64_t bytes = 0;
  const auto is_small = [most, &bytes](const struct stat& opened) {
    bytes = static_cast<std::uint64_t>(opened.st_size);
    return S_ISREG(opened.st_mode) && bytes <= most && store::has_space_for(bytes);
  };
  if (copy_file(name, temporary.c_str(), is_small) && publish(temporary.c_str(), copy.c_str()))
    return bytes;
  base::system_call(SYS_unlinkat, AT_FDCWD, temporary.c_str(), 0);
  return 0;
}

void add_copy_ahead(base::TextBuffer& copy, std::string_view name) {
  store::add_place(copy, kAhead, name);
}

bool find_copy_ahead(const Name& name, base::TextBuffer& copy) {
  add_copy_ahead(copy, name.view());
  return records::read(name.view()).state != records::Record::State::changing;
}

void note_change_ahead(const Name& name) {
  base::Text<PATH_MAX> mark, copy;
  char target[16];
  store::add_place(mark, kAhead, store::parent_of(name.view()));
  if (base::read_link(mark.c_str(), target, sizeof target) <= 0) return;
  records::store_note(name.view());
  add_copy_ahead(copy, name.view());
  base::system_call(SYS_unlinkat, AT_FDCWD, copy.c_str(), 0);
}

}  // namespace pario::node_cache
