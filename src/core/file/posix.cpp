#include "core/file/posix.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "core/file/attributes.hpp"
#include "core/file/member.hpp"
#include "core/file/transfer.hpp"

namespace pario::file {
namespace {

/// Repeats a call that returns -1 and sets errno while signals interrupt it: 0 or the errno.
template <class Call>
int errno_of(Call call) {
  while (call() < 0)
    if (errno != EINTR) return errno;
  return 0;
}

bool same_file(int a, int b) {
  struct stat first{}, second{};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

/// True if a file of that size cannot fit. Checked first, because a failing allocation leaves other
/// programs without space for a while.
bool exceeds_free_space(int descriptor, std::uint64_t size) {
  struct stat facts{};
  struct statvfs system{};
  if (::fstat(descriptor, &facts) != 0 || ::fstatvfs(descriptor, &system) != 0 ||
      system.f_blocks == 0)
    return false;
  const std::uint64_t allocated = static_cast<std::uint64_t>(facts.st_blocks) * 512;
  return size > allocated && (size - allocated) / system.f_frsize > system.f_bfree;
}

class PosixFile final : public Member {
 public:
  PosixFile(std::string path, int descriptor, layout::StripeLayout layout, std::string trouble)
      : Member(std::move(path), layout), descriptor_(descriptor), trouble_(std::move(trouble)) {}
  ~PosixFile() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  Capabilities capabilities() const override;
  base::Result<std::uint64_t> size() override;
  base::Status resize(std::uint64_t size) override;
  base::Status preallocate(std::uint64_t size) override;
  base::Status sync() override;
  base::Status lock(base::Extent where, bool exclusive) override;
  base::Result<bool> try_lock(base::Extent where, bool exclusive) override;
  base::Status unlock(base::Extent where) override {
    return status(change_lock(where, F_UNLCK, true), "unlock", where);
  }
  base::Status refresh() override;
  base::Status close() override;
  std::string striping_trouble() const override { return trouble_; }

 private:
  long attempt_read(std::uint64_t offset, std::span<const iovec> pieces) override;
  long attempt_write(std::uint64_t offset, std::span<const iovec> pieces) override;
  bool has_locks() const;
  int set_lock(base::Extent where, bool exclusive, bool waits);
  int change_lock(base::Extent where, short type, bool waits);
  void drop_cache(base::Extent where);
  base::Status status(int number, const char* operation, base::Extent where = {}) const {
    return number == 0 ? base::Status{} : error(number, operation, where);
  }

  int descriptor_;
  std::string trouble_;
};

long PosixFile::attempt_read(std::uint64_t offset, std::span<const iovec> pieces) {
  if (layout().kind == layout::Kind::ceph_fuse)
    drop_cache(base::Extent::at(offset, total_length(pieces)));
  const auto at = static_cast<off_t>(offset);
  const ssize_t moved =
      pieces.size() == 1
          ? ::pread(descriptor_, pieces[0].iov_base, pieces[0].iov_len, at)
          : ::preadv(descriptor_, pieces.data(), static_cast<int>(pieces.size()), at);
  return moved < 0 ? -errno : moved;
}

long PosixFile::attempt_write(std::uint64_t offset, std::span<const iovec> pieces) {
  const auto at = static_cast<off_t>(offset);
  const ssize_t moved =
      pieces.size() == 1
          ? ::pwrite(descriptor_, pieces[0].iov_base, pieces[0].iov_len, at)
          : ::pwritev(descriptor_, pieces.data(), static_cast<int>(pieces.size()), at);
  return moved < 0 ? -errno : moved;
}

/// True unless the file system rejects a query about locks; it then rejects locks, too.
bool PosixFile::has_locks() const {
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  const auto ask = [&](int command) {
    return errno_of([&] { return ::fcntl(descriptor_, command, &range); });
  };
  const int number = ask(F_OFD_GETLK);
  return (number == EINVAL ? ask(F_GETLK) : number) == 0;
}

Capabilities PosixFile::capabilities() const {
  struct stat facts{};
  const bool regular = ::fstat(descriptor_, &facts) == 0 && S_ISREG(facts.st_mode);
  return {.locks = has_locks(),
          .preallocation = regular,
          .striping = can_set_stripes(layout().kind),
          .resize = regular,
          .refresh = !layout::traits(layout().kind).byte_coherent,
          .content = regular || S_ISBLK(facts.st_mode)};
}

base::Result<std::uint64_t> PosixFile::size() {
  struct stat facts{};
  if (::fstat(descriptor_, &facts) != 0) return error(errno, "fstat");
  if (!S_ISBLK(facts.st_mode)) return static_cast<std::uint64_t>(facts.st_size);
  const off_t end = ::lseek(descriptor_, 0, SEEK_END);
  if (end < 0) return error(errno, "lseek");
  return static_cast<std::uint64_t>(end);
}

base::Status PosixFile::resize(std::uint64_t size) {
  if (size > INT64_MAX) return error(EFBIG, "ftruncate", {0, size});
  return status(errno_of([&] { return ::ftruncate(descriptor_, static_cast<off_t>(size)); }),
                "ftruncate", {0, size});
}

base::Status PosixFile::preallocate(std::uint64_t size) {
  if (size == 0) return {};
  if (size > INT64_MAX) return error(EFBIG, "posix_fallocate", {0, size});
  if (exceeds_free_space(descriptor_, size))
    return error(ENOSPC, "posix_fallocate", {0, size}, "more than the file system has free");
  int number = EINTR;
  while (number == EINTR) number = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(size));
  return status(number, "posix_fallocate", {0, size});
}

base::Status PosixFile::sync() {
  const int number = errno_of([&] { return ::fdatasync(descriptor_); });
  return status(number == EINVAL ? 0 : number,
                "fdatasync");  // EINVAL: a device such as /dev/null, which keeps nothing
}

base::Result<bool> PosixFile::try_lock(base::Extent where, bool exclusive) {
  const int number = set_lock(where, exclusive, false);
  if (number == EAGAIN || number == EACCES) return false;
  return number == 0 ? base::Result<bool>(true) : error(number, "lock", where);
}

base::Status PosixFile::lock(base::Extent where, bool exclusive) {
  base::Status locked = status(set_lock(where, exclusive, true), "lock", where);
  if (locked && !layout::traits(layout().kind).byte_coherent) drop_cache(where);
  return locked;
}

/// Locks; returns 0 or an errno. A shared lock through a write-only descriptor (EBADF) becomes an
/// exclusive one.
int PosixFile::set_lock(base::Extent where, bool exclusive, bool waits) {
  const int number = change_lock(where, exclusive ? F_WRLCK : F_RDLCK, waits);
  return number == EBADF && !exclusive ? change_lock(where, F_WRLCK, waits) : number;
}

/// Changes a lock; returns 0 or an errno. Prefers locks of the open file: locks of the process
/// vanish when any code in it closes the file.
int PosixFile::change_lock(base::Extent where, short type, bool waits) {
  if (where.empty()) return 0;  // length 0 would lock to the end
  if (where.begin > INT64_MAX) return EINVAL;
  struct flock wanted{};
  wanted.l_type = type;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = static_cast<off_t>(where.begin);
  wanted.l_len = where.end > INT64_MAX ? 0 : static_cast<off_t>(where.length());
  static std::atomic<bool> of_open_files = true;
  const int command = waits ? F_OFD_SETLKW : F_OFD_SETLK;
  if (const int number =
          of_open_files ? errno_of([&] { return ::fcntl(descriptor_, command, &wanted); }) : EINVAL;
      number != EINVAL)
    return number;
  const int number =
      errno_of([&] { return ::fcntl(descriptor_, waits ? F_SETLKW : F_SETLK, &wanted); });
  if (number == 0) of_open_files = false;
  return number;
}

/// Drops a range from this node's page cache, so that it is read from the server.
void PosixFile::drop_cache(base::Extent where) {
  constexpr std::uint64_t kPage = 4096;  // the kernel keeps pages that are covered in part
  if (where.begin > INT64_MAX) return;
  const std::uint64_t begin = base::round_down(where.begin, kPage);
  const std::uint64_t length =
      where.end > INT64_MAX - kPage ? 0 : base::round_up(where.end, kPage) - begin;
  ::posix_fadvise(descriptor_, static_cast<off_t>(begin), static_cast<off_t>(length),
                  POSIX_FADV_DONTNEED);
}

/// Opens the file again: NFS then validates its cache with the server, which must have this node's
/// writes first.
base::Status PosixFile::refresh() {
  if (layout::traits(layout().kind).byte_coherent) return {};
  if (base::Status synced = sync(); !synced) return synced;
  base::Result<int> again = open_descriptor(path(), O_RDONLY, 0);
  if (!again.ok()) return again.error().number == EACCES ? base::Status{} : again.status();
  const bool same = same_file(*again, descriptor_);
  ::close(*again);
  if (!same) return error(ESTALE, "open", {}, "the path now names another file");
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
  return {};
}

base::Status PosixFile::close() {
  // The next open on this node then sees the writes of other nodes.
  if (descriptor_ >= 0 && layout().kind == layout::Kind::ceph_fuse) drop_cache({0, INT64_MAX});
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor < 0) return error(EBADF, "close", {}, "closed before");
  // The descriptor is closed even after EINTR.
  return ::close(descriptor) == 0 || errno == EINTR ? base::Status{} : error(errno, "close");
}

}  // namespace

base::Result<int> open_descriptor(const std::string& path, int flags, unsigned mode) {
  const base::Unbuffered as_it_is;  // neither buffered nor replaced by a copy
  // With O_APPEND pwrite ignores its offset.
  const int wanted = (flags & ~O_APPEND) | O_CLOEXEC;
  int descriptor = -1;
  int number = errno_of([&] { return descriptor = ::open(path.c_str(), wanted, mode); });
  if (number == 0 && descriptor <= STDERR_FILENO) {
    const int low = descriptor;
    number =
        errno_of([&] { return descriptor = ::fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); });
    ::close(low);
  }
  if (number != 0) return base::Error{.number = number, .operation = "open", .path = path};
  return descriptor;
}

std::unique_ptr<File> make_posix(std::string path, int descriptor, layout::StripeLayout layout,
                                 std::string striping_trouble) {
  return std::make_unique<PosixFile>(std::move(path), descriptor, layout,
                                     std::move(striping_trouble));
}

}  // namespace pario::file
