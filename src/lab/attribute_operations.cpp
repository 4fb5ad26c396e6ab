#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "lab/caller.hpp"

namespace pario::lab {
namespace {

bool is_root(const char* path) { return std::strcmp(path, "/") == 0; }

bool is_directory(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

/// As getxattr(2) returns a value: its size alone where there is no room.
template <class Value>
int given(const Value& value, char* room, std::size_t size) {
  if (size > 0 && size < value.size()) return -ERANGE;
  if (size > 0) std::memcpy(room, value.data(), value.size());  // NOLINT(bugprone-not-null-terminated-result): it has a length
  return static_cast<int>(value.size());
}

/// Names that belong to the lab, but mean nothing for what a path names: as on servers that do not know them.
bool is_of_others(const char* name) {
  const std::string_view text = name;
  return text.starts_with("lustre.") || text.starts_with("ceph.") || text == lab().store.record_name();
}

int do_setxattr(const char* path, const char* name, const char* value, std::size_t size, int flags) {
  const std::string place = real(path);
  switch (told_by(lab(), name, is_directory(place))) {
    case Told::stripes:
      return set_stripes(lab(), place, caller(), std::as_bytes(std::span(value, size)));
    case Told::status:
      return is_root(path) ? (lab().targets.reset_counts(), 0) : -EPERM;
    case Told::nothing:
      break;
  }
  if (is_of_others(name)) return -EOPNOTSUPP;
  return ::lsetxattr(place.c_str(), name, value, size, flags) < 0 ? -errno : 0;
}

int do_getxattr(const char* path, const char* name, char* room, std::size_t size) {
  const std::string place = real(path);
  const Told told = told_by(lab(), name, is_directory(place));
  if (told == Told::status) return is_root(path) ? given(status_of(lab()), room, size) : -ENODATA;
  if (told == Told::stripes) {
    const auto stripes = stripes_of(lab(), place, is_root(path));
    return stripes ? given(*stripes, room, size) : -ENODATA;
  }
  if (lab().settings.personality == Personality::ceph && std::strcmp(name, "ceph.dir.entries") == 0 && is_directory(place))
    return given(std::string("0"), room, size);  // by which one knows Ceph
  if (is_of_others(name)) return -ENODATA;
  const ssize_t got = ::lgetxattr(place.c_str(), name, room, size);
  return got < 0 ? -errno : static_cast<int>(got);
}

int do_listxattr(const char* path, char* room, std::size_t size) {
  std::string all(64 << 10, '\0'), shown;
  const ssize_t got = ::llistxattr(real(path).c_str(), all.data(), all.size());
  if (got < 0) return -errno;
  for (std::string_view rest(all.data(), static_cast<std::size_t>(got)); !rest.empty();) {
    const std::string name(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(name.size() + 1);
    const bool own = name == lab().store.record_name();
    if (own && lab().settings.personality == Personality::ceph) continue;  // which does not list them
    shown += own ? layout::kLustreAttribute : name;
    shown += '\0';
  }
  return given(shown, room, size);
}

int do_removexattr(const char* path, const char* name) {
  const std::string place = real(path);
  const Told told = told_by(lab(), name, is_directory(place));
  if (told == Told::status) return -EPERM;
  if (told == Told::stripes) return is_directory(place) ? lab().store.remove_record(place) : -EPERM;
  return ::lremovexattr(place.c_str(), name) < 0 ? -errno : 0;
}

/// LL_IOC_GETOBDCOUNT of Lustre: how many targets there are.
int do_ioctl(const char*, unsigned command, void*, fuse_file_info*, unsigned, void* data) {
  constexpr unsigned kGetTargetCount = _IOR('f', 168, long);
  if (lab().settings.personality != Personality::lustre || command != kGetTargetCount) return -ENOTTY;
  const long count = lab().targets.size();
  std::memcpy(data, &count, sizeof count);
  return 0;
}

}  // namespace

void add_attribute_operations(fuse_operations& all) {
  all.setxattr = do_setxattr;
  all.getxattr = do_getxattr;
  all.listxattr = do_listxattr;
  all.removexattr = do_removexattr;
  all.ioctl = do_ioctl;
}

}  // namespace pario::lab
