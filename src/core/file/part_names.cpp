// Names of temporary files, and the removal of stale ones.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <vector>

#include "core/file/publication.hpp"

namespace pario::file {
namespace {

constexpr std::size_t kDigits = 16;

std::string hexadecimal(std::uint64_t number) {
  std::string out(kDigits, '0');
  for (std::size_t i = kDigits; i-- > 0; number >>= 4) out[i] = "0123456789abcdef"[number & 15];
  return out;
}

bool is_own_number(std::string_view digits) {
  std::uint64_t number = 0;
  const char* const end =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return digits.size() == kDigits && end == digits.data() + kDigits && number >> 32 == host_mark();
}

/// Names of the entries of an open directory.
std::vector<std::string> entries_of(DIR* directory) {
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(directory))
    if (const std::string_view name = entry->d_name; name != "." && name != "..")
      names.emplace_back(name);
  return names;
}

/// Removes a directory and its contents, also directories without write permission.
void remove_tree_at(int parent, const char* name) {
  if (::unlinkat(parent, name, 0) == 0 || ::unlinkat(parent, name, AT_REMOVEDIR) == 0) return;
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int descriptor = ::openat(parent, name, kFlags);
  if (descriptor < 0 && errno == EACCES && ::fchmodat(parent, name, 0700, 0) == 0)
    descriptor = ::openat(parent, name, kFlags);
  if (descriptor < 0) return;
  ::fchmod(descriptor, 0700);
  DIR* const directory = ::fdopendir(descriptor);
  if (directory == nullptr) {
    ::close(descriptor);
    return;
  }
  for (const std::string& entry : entries_of(directory)) remove_tree_at(descriptor, entry.c_str());
  ::closedir(directory);
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

}  // namespace

std::uint32_t host_mark() {
  utsname host{};
  base::system_call(SYS_uname, &host);
  return static_cast<std::uint32_t>(base::xxh64(std::string_view(host.nodename)) >> 32);
}

std::uint64_t random_part_number() {
  std::uint32_t random = 0;
  if (base::system_call(SYS_getrandom, &random, sizeof random, 0) !=
      static_cast<long>(sizeof random))
    random = static_cast<std::uint32_t>(
        base::monotonic_ns() ^ static_cast<std::uint64_t>(base::system_call(SYS_getpid)) << 16);
  return part_number(random);
}

std::string part_label(std::string_view name, std::size_t limit) {
  if (name.size() <= limit) return std::string(name);
  return std::string(name.substr(0, limit - kDigits - 1)) + "~" + hexadecimal(base::xxh64(name));
}

std::string part_path(const std::string& target, std::uint64_t number) {
  const std::size_t name = target.rfind('/') + 1;  // 0 without a slash
  return target.substr(0, name) + "." + part_label(std::string_view(target).substr(name)) + "." +
         hexadecimal(number) + std::string(kPartEnding);
}

std::string_view label_of_own_part(std::string_view name) {
  constexpr std::size_t kAround = 2 + kDigits + kPartEnding.size();
  if (name.size() <= kAround || !name.starts_with('.') || !name.ends_with(kPartEnding)) return {};
  const std::string_view label = name.substr(1, name.size() - kAround);
  const std::string_view number = name.substr(label.size() + 2, kDigits);
  return name[label.size() + 1] == '.' && is_own_number(number) ? label : std::string_view();
}

bool is_own_part(std::string_view name, std::string_view target) {
  return label_of_own_part(name) == part_label(target);
}

void remove_tree(const std::string& path) { remove_tree_at(AT_FDCWD, path.c_str()); }

bool remove_stale_part(const std::string& path) {
  struct stat facts{}, open{};
  if (::lstat(path.c_str(), &facts) != 0) return errno == ENOENT;
  if (S_ISLNK(facts.st_mode)) return ::unlink(path.c_str()) == 0;
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int descriptor = S_ISDIR(facts.st_mode) ? -1 : ::open(path.c_str(), O_RDWR | kFlags);
  if (descriptor < 0) descriptor = ::open(path.c_str(), O_RDONLY | kFlags);
  if (descriptor < 0) return errno == ENOENT;
  const auto is_still_named = [&] {
    return ::lstat(path.c_str(), &facts) == 0 && open.st_ino == facts.st_ino &&
           open.st_dev == facts.st_dev;
  };
  const bool is_stale = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
                        ::fstat(descriptor, &open) == 0 && is_still_named();
  if (is_stale) remove_tree(path);
  const int number = errno;
  // Once it is removed, another process may have made one of the same name.
  const bool is_kept = is_stale && is_still_named();
  ::close(descriptor);
  if (is_stale && ::lstat(path.c_str(), &facts) != 0) return true;
  errno = is_kept ? number : EBUSY;
  return false;
}

void remove_stale_parts(const std::string& directory,
                        const std::function<bool(std::string_view name)>& selects) {
  DIR* const opened = ::opendir(directory.c_str());
  if (opened == nullptr) return;
  for (const std::string& name : entries_of(opened))
    if (selects(name)) remove_stale_part(std::string(directory).append("/").append(name));
  ::closedir(opened);
}

}  // namespace pario::file
