#include "archive/aside.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "archive/errors.hpp"
#include "records/records.hpp"

namespace pario::archive {
namespace {

/// Directories that may not be written are no obstacle.
void remove_all(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::remove_all(path, ignored);
  if (!ignored) return;
  for (fs::recursive_directory_iterator at(path, ignored), end; !ignored && at != end; at.increment(ignored))
    if (at->symlink_status(ignored).type() == fs::file_type::directory) fs::permissions(at->path(), fs::perms::owner_all, ignored);
  fs::remove_all(path, ignored);
}

/// Of this host: not all file systems tell one host the locks of another.
std::string aside_of(const std::string& path) {
  const std::size_t name = path.rfind('/') + 1;  // 0 where there is none
  return path.substr(0, name) + "." + path.substr(name) + "." + std::to_string(records::host_mark()) + ".part";
}

/// Whether an open directory has this name still.
bool is_at(int descriptor, const std::string& path) {
  struct stat open{}, there{};
  if (::fstat(descriptor, &open) != 0 || ::lstat(path.c_str(), &there) != 0) return false;
  return open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

/// Whether it is ours: another process that has come between may take it for a leftover, and remove it. A file system may have no locks:
/// the name has to do there.
bool hold(int descriptor, const std::string& path) {
  const bool is_taken = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return !is_taken && is_at(descriptor, path);
}

/// The new directory, held by a lock as long as it is open; -1 and errno.
int make_held(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) != 0) return -1;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0 || hold(descriptor, path)) return descriptor;
  ::close(descriptor);
  errno = EBUSY;
  return -1;
}

/// Removes what a process that is gone has left, or a link, but not what it points to; else errno says why not.
bool remove_leftover(const std::string& path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) == 0 && S_ISLNK(facts.st_mode)) return ::unlink(path.c_str()) == 0;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return errno == ENOENT;
  const bool ours = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 && is_at(descriptor, path);
  if (ours) remove_all(path);
  ::close(descriptor);
  if (!ours) errno = EBUSY;
  return ours;
}

/// A name is on the disk when the directory that has it is.
base::Status sync_parent(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == path.npos ? "." : path.substr(0, slash + 1);
  const int descriptor = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return {};  // it may be written, but not read: nobody can ask for it
  const base::Status status = ::fsync(descriptor) == 0 ? base::Status{} : make_error("fsync", parent);
  ::close(descriptor);
  return status;
}

}  // namespace

Aside::Aside(std::string path, std::string aside, int descriptor)
    : path_(std::move(path)), aside_(std::move(aside)), descriptor_(descriptor) {}
Aside::Aside(Aside&& other) noexcept
    : path_(std::move(other.path_)), aside_(std::move(other.aside_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

Aside::~Aside() {
  if (descriptor_ < 0) return;
  remove_all(aside_);
  ::close(descriptor_);
}

base::Result<Aside> Aside::make(const std::string& wanted, mode_t mode) {
  std::string path = wanted;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) == 0) return make_error("mkdir", path, EEXIST);
  const std::string aside = aside_of(path);
  const int descriptor = remove_leftover(aside) ? make_held(aside, mode) : -1;
  if (descriptor >= 0) return Aside(path, aside, descriptor);
  base::Error error = make_error("mkdir", aside);
  if (error.number == EBUSY || error.number == EEXIST) error.detail = "another process makes it";
  return error;
}

base::Status Aside::finish() {
  if (::fsync(descriptor_) != 0) return make_error("fsync", aside_);
  long done = base::system_call(SYS_renameat2, AT_FDCWD, aside_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
  if (done == -EINVAL || done == -ENOSYS)
    done = std::rename(aside_.c_str(), path_.c_str()) == 0 ? 0 : -errno;  // it replaces empty ones only
  if (done < 0) return make_error("rename", path_, static_cast<int>(-done));
  ::close(std::exchange(descriptor_, -1));
  return sync_parent(path_);
}

}  // namespace pario::archive
