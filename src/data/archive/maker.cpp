#include "data/archive/maker.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "data/archive/attributes.hpp"
#include "data/archive/place.hpp"

namespace pario::archive {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr mode_t kOwnDirectory = 0700;  // until its contents are complete
constexpr mode_t kOwnFile = 0600;
constexpr mode_t kUnknown = ~mode_t{0};  // inherited from the directory, or set by it

timespec time_of(std::int64_t nanoseconds) {
  const std::int64_t part =
      ((nanoseconds % kNanosecondsPerSecond) + kNanosecondsPerSecond) % kNanosecondsPerSecond;
  return {.tv_sec = (nanoseconds - part) / kNanosecondsPerSecond, .tv_nsec = part};
}

/// The mask of new files' permissions, which can only be read by setting it.
mode_t current_mask() {
  const mode_t mask = ::umask(077);
  ::umask(mask);
  return mask;
}

/// True if new files get their permissions from the directory's default access control list, and
/// not from mode and umask.
bool inherits_permissions(int directory) {
  return ::fgetxattr(directory, "system.posix_acl_default", nullptr, 0) >= 0;
}

/// True if new files in a directory belong to user 0 and group 0: with S_ISGID they get the
/// directory's group, and a server may map root to another user.
bool makes_for_root(int directory) {
  struct stat facts{};
  return ::fstat(directory, &facts) == 0 && facts.st_uid == 0 && facts.st_gid == 0;
}

/// True for access control lists and capabilities.
bool is_permission(std::string_view attribute) {
  return attribute.starts_with("system.posix_acl_") || attribute.starts_with("security.");
}

}  // namespace

bool is_inside(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find('\0') != name.npos) return false;
  return ("/" + std::string(name) + "/").find("/../") == std::string::npos;
}

Maker::Maker(std::string directory, int root, Losses& losses, bool same_permissions)
    : directory_(std::move(directory)),
      root_(root),
      losses_(losses),
      same_permissions_(same_permissions),
      umask_(current_mask()),
      is_root_(::geteuid() == 0),
      is_for_root_(makes_for_root(root)),
      inherits_(inherits_permissions(root)) {}

base::Error Maker::call_error(const char* operation, const Header& header) const {
  return {.number = errno, .operation = operation, .path = directory_ + "/" + header.name};
}

bool Maker::gives_away(const Header& header) const {
  return is_root_ && (!is_for_root_ || header.user != 0 || header.group != 0);
}

base::Status Maker::make(const Header& header, TarStream& tar) const {
  if (header.type == Type::file) return make_file(header, tar);
  if (header.type == Type::directory) return make_directory(header.name);
  if (header.type != Type::hard_link) return make_special(header);
  const int made = at_place(root_, header.target, [&](int from, const char* target) {
    return at_place(root_, header.name,
                    [&](int to, const char* name) { return ::linkat(from, target, to, name, 0); });
  });
  return possible(made, Missing::link, "link", header);
}

base::Status Maker::make_directory(const std::string& name) const {
  for (std::size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1))
    if (base::Status status = make_one_directory(name.substr(0, slash)); !status) return status;
  return make_one_directory(name);
}

base::Status Maker::make_one_directory(const std::string& name) const {
  const auto make = [](int directory, const char* part) {
    return ::mkdirat(directory, part, kOwnDirectory);
  };
  if (at_place(root_, name, make) == 0 || errno == EEXIST) return {};
  const base::Error error{.number = errno, .operation = "mkdir", .path = directory_ + "/" + name};
  return losses_.is_taken(Missing::place, error)
             ? base::Status{}
             : error;  // its members are counted as losses, and it itself at the end
}

base::Result<int> Maker::open_new(const Header& header, mode_t mode) const {
  const int descriptor = at_place(root_, header.name, [&](int directory, const char* name) {
    return ::openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  });
  const base::Status status = possible(std::min(descriptor, 0), Missing::place, "open", header);
  return status ? base::Result<int>(descriptor) : status.error();
}

base::Result<int> Maker::begin_file(const Header& header) const {
  return open_new(header, kOwnFile);
}

base::Status Maker::finish_file(const Header& header, int descriptor) const {
  return finish(header, descriptor, made_with(kOwnFile));
}

mode_t Maker::made_with(mode_t asked) const { return inherits_ ? kUnknown : asked & ~umask_; }

base::Status Maker::make_file(const Header& header, TarStream& tar) const {
  const auto descriptor = open_new(header, header.mode & 0777);
  if (!descriptor.ok() || *descriptor < 0) return descriptor.status();
  base::Status status = fill(header, tar, *descriptor);
  if (status) status = finish(header, *descriptor, made_with(header.mode & 0777));
  if (::close(*descriptor) != 0 && status) status = call_error("close", header);
  return status;
}

base::Status Maker::fill(const Header& header, TarStream& tar, int descriptor) const {
  std::vector<base::Extent> data;
  if (base::Status status = read_data_places(header, tar, data); !status) return status;
  if (header.sparse && ::ftruncate(descriptor, static_cast<off_t>(header.size)) != 0)
    return call_error("truncate", header);
  for (const base::Extent& piece : data)
    if (base::Status status = put(header, descriptor, piece, tar); !status) return status;
  return {};
}

base::Status Maker::put(const Header& header, int descriptor, base::Extent part,
                        TarStream& tar) const {
  for (std::uint64_t at = part.begin; at < part.end;) {
    const auto bytes = tar.next(part.end - at);
    if (!bytes.ok()) return bytes.status();
    const long done = base::write_all(descriptor, bytes->data(), bytes->size(), at);
    if (done < 0) {
      errno = static_cast<int>(-done);
      return call_error("write", header);
    }
    at += bytes->size();
  }
  return {};
}

base::Status Maker::possible(int result, Missing what, const char* operation,
                             const Header& header) const {
  return result == 0 ? base::Status{} : losses_.take(what, call_error(operation, header));
}

Attributes Maker::attributes_of(const Header& header) const {
  Attributes attributes = header.attributes;
  if (!same_permissions_)
    std::erase_if(attributes, [](const auto& attribute) { return is_permission(attribute.first); });
  return attributes;
}

base::Status Maker::give_attributes(const Header& header, int descriptor) const {
  const Attributes attributes = attributes_of(header);
  if (attributes.empty()) return {};
  const std::string path = directory_ + "/" + header.name;
  const auto give = [&](const std::string& at) {
    return write_attributes(descriptor, at, attributes);
  };
  const base::Status given =
      descriptor >= 0 ? give(path) : with_path(root_, header.name, path, give);
  return given ? given : losses_.take(Missing::attributes, given.error());
}

mode_t Maker::mode_of(const Header& header, int descriptor) const {
  if (!same_permissions_) return header.mode & 0777 & ~umask_;
  if ((header.mode & (S_ISUID | S_ISGID | S_ISVTX)) == 0) return header.mode;
  struct stat facts{};
  const auto look = [&](int directory, const char* name) {
    return ::fstatat(directory, name, &facts, AT_SYMLINK_NOFOLLOW);
  };
  const bool known =
      (descriptor >= 0 ? ::fstat(descriptor, &facts) : at_place(root_, header.name, look)) == 0;
  const bool is_users = known && facts.st_uid == header.user,
             is_groups = is_users && facts.st_gid == header.group;
  mode_t without = 0;
  if (!is_groups) without |= S_ISGID;
  if (!is_users) without |= S_ISUID;
  if (!is_users && header.type != Type::directory)
    without |= S_ISVTX;  // on a directory this bit only restricts
  return header.mode & ~without;
}

base::Status Maker::finish(const Header& header, int descriptor, mode_t made) const {
  if (gives_away(header)) {
    const int given =
        ::fchown(descriptor, static_cast<uid_t>(header.user), static_cast<gid_t>(header.group));
    if (base::Status status = possible(given, Missing::owner, "chown", header); !status)
      return status;
  }
  if (base::Status status = give_attributes(header, descriptor); !status) return status;
  const mode_t mode = mode_of(header, descriptor);
  const bool as_made =
      mode == made && header.attributes.empty();  // attributes may change permissions
  if (!as_made)
    if (base::Status status =
            possible(::fchmod(descriptor, mode), Missing::permissions, "chmod", header);
        !status)
      return status;
  const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_NOW}, time_of(header.modified)};
  return ::futimens(descriptor, times) == 0 ? base::Status{} : call_error("utimens", header);
}

base::Status Maker::make_special(const Header& header) const {
  const bool is_link = header.type == Type::symbolic_link;
  const mode_t kind = header.type == Type::pipe           ? S_IFIFO
                      : header.type == Type::block_device ? S_IFBLK
                                                          : S_IFCHR;
  const Missing what = is_link                     ? Missing::symbolic_link
                       : header.type == Type::pipe ? Missing::pipe
                                                   : Missing::device;
  const int made = at_place(root_, header.name, [&](int directory, const char* name) {
    return is_link ? ::symlinkat(header.target.c_str(), directory, name)
                   : ::mknodat(directory, name, kind | (header.mode & 0777),
                               makedev(header.major, header.minor));
  });
  return made == 0 ? finish_special(header)
                   : possible(made, what, is_link ? "symlink" : "mknod", header);
}

base::Status Maker::finish_special(const Header& header) const {
  const auto call = [&](auto what) { return at_place(root_, header.name, what); };
  const auto give = [&](int directory, const char* name) {
    return ::fchownat(directory, name, static_cast<uid_t>(header.user),
                      static_cast<gid_t>(header.group), AT_SYMLINK_NOFOLLOW);
  };
  const auto permit = [&](int directory, const char* name) {
    return ::fchmodat(directory, name, mode_of(header, -1), 0);
  };
  base::Status status;
  if (gives_away(header)) status = possible(call(give), Missing::owner, "chown", header);
  if (status && header.type != Type::symbolic_link)
    status = possible(call(permit), Missing::permissions, "chmod", header);
  if (status) status = give_attributes(header, -1);
  if (!status) return status;
  const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_NOW}, time_of(header.modified)};
  const auto stamp = [&](int directory, const char* name) {
    return ::utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW);
  };
  return call(stamp) == 0 ? base::Status{} : call_error("utimens", header);
}

base::Status Maker::permit_directory(const std::string& name, mode_t mode) const {
  const int descriptor = open_beneath(root_, name, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return {};  // make_directory() has accepted that it cannot be made
  const mode_t allowed = same_permissions_ ? mode & (S_ISVTX | 0777) : mode & 0777 & ~umask_;
  const int done = ::fchmod(descriptor, allowed);
  base::Status status = possible(done, Missing::permissions, "chmod", {.name = name});
  ::close(descriptor);
  return status;
}

mode_t Maker::usual_directory() const { return 0777 & ~umask_; }

base::Status Maker::finish_directory(const Header& header) const {
  const int descriptor = open_beneath(root_, header.name, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return possible(descriptor, Missing::place, "open", header);
  base::Status status = finish(header, descriptor, kUnknown);
  ::close(descriptor);
  return status;
}

}  // namespace pario::archive
