#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "instruments/lab/caller.hpp"

namespace pario::lab {
namespace {

bool is_root(const char* path) { return std::strcmp(path, "/") == 0; }

bool is_directory(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

/// Copies a value as getxattr(2) does; with `size` 0 returns only its size.
template <class Value>
int copy_value(const Value& value, char* buffer, std::size_t size) {
  if (size > 0 && size < value.size()) return -ERANGE;
  // NOLINTNEXTLINE(bugprone-not-null-terminated-result): it has a length
  if (size > 0) std::memcpy(buffer, value.data(), value.size());
  return static_cast<int>(value.size());
}

/// True for attributes of the lab that do not apply to this path; servers without them reject them,
/// too.
bool is_foreign_attribute(const char* name) {
  const std::string_view text = name;
  return text.starts_with("lustre.") || text.starts_with("ceph.") ||
         text == lab().store.record_name();
}

int do_setxattr(const char* path, const char* name, const char* value, std::size_t size,
                int flags) {
  const std::string place = real(path);
  switch (classify_attribute(lab(), name, is_directory(place))) {
    case AttributeKind::stripes:
      return set_stripes(lab(), place, caller(), std::as_bytes(std::span(value, size)));
    case AttributeKind::status:
      return is_root(path) ? (lab().targets.reset_counts(), lab().metadata.reset_counts(), 0)
                           : -EPERM;
    case AttributeKind::none:
      break;
  }
  if (is_foreign_attribute(name)) return -EOPNOTSUPP;
  return ::lsetxattr(place.c_str(), name, value, size, flags) < 0 ? -errno : 0;
}

int do_getxattr(const char* path, const char* name, char* buffer, std::size_t size) {
  const std::string place = real(path);
  const AttributeKind kind = classify_attribute(lab(), name, is_directory(place));
  if (kind == AttributeKind::status)
    return is_root(path) ? copy_value(status_of(lab()), buffer, size) : -ENODATA;
  if (kind == AttributeKind::stripes) {
    const auto stripes = stripes_of(lab(), place, is_root(path));
    return stripes ? copy_value(*stripes, buffer, size) : -ENODATA;
  }
  if (lab().settings.personality == Personality::ceph &&
      std::strcmp(name, "ceph.dir.entries") == 0 && is_directory(place))
    return copy_value(std::string("0"), buffer, size);  // identifies the file system as Ceph
  if (is_foreign_attribute(name)) return -ENODATA;
  const ssize_t got = ::lgetxattr(place.c_str(), name, buffer, size);
  return got < 0 ? -errno : static_cast<int>(got);
}

int do_listxattr(const char* path, char* buffer, std::size_t size) {
  std::string all(64 << 10, '\0'), shown;
  const ssize_t got = ::llistxattr(real(path).c_str(), all.data(), all.size());
  if (got < 0) return -errno;
  for (std::string_view rest(all.data(), static_cast<std::size_t>(got)); !rest.empty();) {
    const std::string name(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(name.size() + 1);
    const bool own = name == lab().store.record_name();
    if (own && lab().settings.personality == Personality::ceph)
      continue;  // Ceph does not list its attributes
    shown += own ? layout::kLustreAttribute : name;
    shown += '\0';
  }
  return copy_value(shown, buffer, size);
}

int do_removexattr(const char* path, const char* name) {
  const std::string place = real(path);
  const AttributeKind kind = classify_attribute(lab(), name, is_directory(place));
  if (kind == AttributeKind::status) return -EPERM;
  if (kind == AttributeKind::stripes)
    return is_directory(place) ? lab().store.remove_record(place) : -EPERM;
  return ::lremovexattr(place.c_str(), name) < 0 ? -errno : 0;
}

/// Implements LL_IOC_GETOBDCOUNT of Lustre: the number of targets.
int do_ioctl(const char*, unsigned command, void*, fuse_file_info*, unsigned, void* data) {
  constexpr unsigned kGetTargetCount = _IOR('f', 168, long);
  if (lab().settings.personality != Personality::lustre || command != kGetTargetCount)
    return -ENOTTY;
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
