#include "core/file/publication.hpp"

#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

namespace pario::file {
namespace {

constexpr std::uint32_t kSlots = 1024;

/// True if an open file still has this name.
bool is_named(int descriptor, const std::string& path) {
  struct stat open{}, there{};
  if (::fstat(descriptor, &open) != 0 || ::lstat(path.c_str(), &there) != 0) return false;
  return open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

/// Locks a new part. False: another process took it for a stale one before it was locked. On a file
/// system without locks, the name alone protects the part.
bool lock_part(int descriptor, const std::string& path) {
  const bool is_locked = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return !is_locked && is_named(descriptor, path);
}

/// open(2), without O_DIRECT where the file system rejects that.
int open_file(const std::string& path, int flags, mode_t mode) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  return descriptor >= 0 || errno != EINVAL || (flags & O_DIRECT) == 0
             ? descriptor
             : ::open(path.c_str(), (flags & ~O_DIRECT) | O_CLOEXEC, mode);
}

/// A new locked file, or -1 and errno.
int create_file(const std::string& path, const Publication::Options& options) {
  for (;;) {
    const int descriptor = open_file(path, options.flags | O_RDWR | O_CREAT | O_EXCL, options.mode);
    if (descriptor < 0 || lock_part(descriptor, path)) return descriptor;
    ::close(descriptor);
  }
}

/// Creates the file in the place of a stale part. EEXIST: another process uses that part.
int replace_stale(const std::string& path, const Publication::Options& options) {
  for (;;) {
    const int descriptor = create_file(path, options);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
    if (!remove_stale_part(path)) {
      errno = EEXIST;
      return -1;
    }
  }
}

/// A new locked file without a name in the target's directory, or -1 and errno.
int create_nameless(const std::string& target, const Publication::Options& options) {
  const int descriptor =
      open_file(directory_of(target), options.flags | O_RDWR | O_TMPFILE, options.mode);
  if (descriptor >= 0) ::flock(descriptor, LOCK_EX | LOCK_NB);
  return descriptor;
}

/// A new locked directory in the place of a stale part, or -1 and errno.
int create_directory(const std::string& path, mode_t mode) {
  if (!remove_stale_part(path)) return -1;
  if (::mkdir(path.c_str(), mode) != 0) return -1;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0 && errno != ENOENT) return -1;
  if (descriptor >= 0 && lock_part(descriptor, path)) return descriptor;
  if (descriptor >= 0) ::close(descriptor);
  errno = EBUSY;  // another process took it for a stale one before it was locked
  return -1;
}

/// True for the error of a directory that another process makes.
bool is_made(int number) { return number == EBUSY || number == EEXIST; }

/// True also for the error of a directory of another user.
bool may_be_taken(int number) { return is_made(number) || number == EACCES || number == EPERM; }

bool is_there(const std::string& path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) == 0;
}

/// Removes the stale parts in the slots from `slot` on, up to the first slot without a part.
void remove_stale_from(std::uint32_t slot, const std::string& target) {
  for (std::string part; is_there(part = part_path(target, part_number(slot))); ++slot)
    remove_stale_part(part);
}

/// Writes the directory's entries to the disk. Skips a directory that can be written but not read.
base::Status sync_directory(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return {};
  const base::Status status =
      ::fsync(descriptor) == 0 ? base::Status{} : base::path_error("fsync", path);
  ::close(descriptor);
  return status;
}

bool has_no_nameless_files(int number) {
  return number == EOPNOTSUPP || number == EISDIR || number == EINVAL;
}

bool has_no_rename_flags(int number) {
  return number == EINVAL || number == ENOSYS || number == ENOTSUP;
}

bool has_no_links(int number) {
  return number == EPERM || number == ENOTSUP || number == ENOSYS || number == EMLINK;
}

}  // namespace

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  return real ? real.get() : "";
}

Publication::Publication(std::string target, std::string part, int descriptor, bool is_directory,
                         bool durable)
    : target_(std::move(target)),
      part_(std::move(part)),
      descriptor_(descriptor),
      is_directory_(is_directory),
      durable_(durable) {}

Publication::Publication(Publication&& other) noexcept
    : target_(std::move(other.target_)),
      part_(std::exchange(other.part_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      is_directory_(other.is_directory_),
      durable_(other.durable_) {}

Publication::~Publication() {
  // Still locked: no other process removes it, and creates another one, at the same time.
  if (!part_.empty() && descriptor_ >= 0 && is_named(descriptor_, part_)) {
    if (is_directory_)
      remove_tree(part_);
    else
      ::unlink(part_.c_str());
  }
  if (descriptor_ >= 0) ::close(descriptor_);
}

base::Result<Publication> Publication::of_file(const std::string& target, const Options& options) {
  if (options.nameless) {
    const int descriptor = create_nameless(target, options);
    if (descriptor >= 0) return Publication(target, {}, descriptor, false, options.durable);
    if (!has_no_nameless_files(errno)) return base::path_error("open", directory_of(target));
  }
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    const std::string part = part_path(target, options.number.value_or(part_number(slot)));
    const int descriptor = replace_stale(part, options);
    if (descriptor < 0 && errno == EEXIST && !options.number) continue;
    if (descriptor < 0) return base::path_error("open", part);
    if (!options.number) remove_stale_from(slot + 1, target);
    return Publication(target, part, descriptor, false, options.durable);
  }
  return base::Error{.number = EBUSY,
                     .operation = "open",
                     .path = target,
                     .detail = "all slots for its temporary files are in use"};
}

base::Result<Publication> Publication::of_directory(const std::string& wanted,
                                                    const DirectoryOptions& options) {
  std::string target = wanted;
  while (target.size() > 1 && target.ends_with('/')) target.pop_back();
  if (!options.temporary && is_there(target)) return base::path_error("mkdir", target, EEXIST);
  const std::uint32_t last = options.exclusive ? 0 : kSlots - 1;
  for (std::uint32_t slot = 0;; ++slot) {
    const std::string part = part_path(target, part_number(slot));
    const int descriptor = create_directory(part, options.mode);
    if (descriptor >= 0) {
      remove_stale_from(slot + 1, target);
      return Publication(target, part, descriptor, true);
    }
    if (slot < last && may_be_taken(errno)) continue;
    base::Error error = base::path_error("mkdir", part);
    if (is_made(error.number)) error.detail = "another process makes it";
    return error;
  }
}

base::Status Publication::publish(Existing existing) {
  if (durable_ && ::fsync(descriptor_) != 0)
    return base::path_error("fsync", part_.empty() ? target_ : part_);
  const bool nameless = part_.empty();
  if (const int number = nameless ? link_nameless(existing) : rename_part(existing); number != 0)
    return base::path_error(nameless ? "linkat" : "rename", target_, number);
  part_.clear();
  return durable_ ? sync_directory(directory_of(target_)) : base::Status();
}

int Publication::release() {
  part_.clear();
  return std::exchange(descriptor_, -1);
}

/// Gives the part its target's name; returns 0 or an errno.
int Publication::rename_part(Existing existing) {
  if (existing == Existing::keep) return rename_exclusively();
  return std::rename(part_.c_str(), target_.c_str()) == 0 ? 0 : errno;
}

int Publication::rename_exclusively() {
  const long done = base::system_call(SYS_renameat2, AT_FDCWD, part_.c_str(), AT_FDCWD,
                                      target_.c_str(), RENAME_NOREPLACE);
  if (done == 0 || !has_no_rename_flags(static_cast<int>(-done))) return static_cast<int>(-done);
  if (!is_directory_) {
    if (::link(part_.c_str(), target_.c_str()) == 0)
      return ::unlink(part_.c_str()) == 0 ? 0 : errno;
    if (!has_no_links(errno)) return errno;
    if (is_there(target_)) return EEXIST;
  }
  // A directory replaces empty directories only.
  return std::rename(part_.c_str(), target_.c_str()) == 0 ? 0 : errno;
}

int Publication::link_nameless(Existing existing) {
  const std::string self = "/proc/self/fd/" + std::to_string(descriptor_);
  const auto link_to = [&](const std::string& path) {
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0
                                                                                            : errno;
  };
  const int number = link_to(target_);
  if (number != EEXIST || existing == Existing::keep) return number;
  const std::string part = part_path(target_, random_part_number());
  if (const int failed = link_to(part); failed != 0) return failed;
  part_ = part;
  return rename_part(existing);
}

}  // namespace pario::file
