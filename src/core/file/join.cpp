// Makes one ordinary file of subfiles.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "core/file/posix.hpp"
#include "core/file/publication.hpp"
#include "core/file/subfiled.hpp"

namespace pario::file {
namespace {

using Progress = std::function<void(std::uint64_t done, std::uint64_t whole)>;

/// A range of one file and its place in another.
struct Copy {
  int from;
  std::uint64_t from_offset;
  int to;
  std::uint64_t to_offset, length;
};

/// Shares blocks instead of copying bytes, if the file system can.
bool share(const Copy& copy) {
  file_clone_range range{};
  range.src_fd = copy.from;
  range.src_offset = copy.from_offset;
  range.src_length = copy.length;
  range.dest_offset = copy.to_offset;
  return ::ioctl(copy.to, FICLONERANGE, &range) == 0;
}

/// copy_file_range(2) for the whole range: 0 or the errno.
int copy_by_kernel(const Copy& copy) {
  auto from = static_cast<off_t>(copy.from_offset), to = static_cast<off_t>(copy.to_offset);
  for (std::uint64_t left = copy.length; left > 0;) {
    const ssize_t moved = ::copy_file_range(copy.from, &from, copy.to, &to, left, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return moved == 0 ? EIO : errno;
    left -= static_cast<std::uint64_t>(moved);
  }
  return 0;
}

bool cannot_copy(int number) {
  return number == EXDEV || number == ENOSYS || number == EOPNOTSUPP || number == EINVAL;
}

class Joiner {
 public:
  Joiner(std::string path, layout::SubfileMap map, const Progress& progress, Joining how)
      : path_(std::move(path)), map_(map), progress_(progress), how_(how) {}

  base::Status run();
  /// Copies all bytes to an empty file, of the temporary name `part`.
  base::Status fill_copy(const std::string& part, int to);

 private:
  base::Status fill(int to);
  base::Status find_size();
  base::Status copy_part(std::uint32_t number, File& whole, int to);
  base::Status copy_data(std::uint32_t number, File& whole, int from, int to);
  std::uint64_t share_front(const Copy& copy);
  base::Status move(Copy copy, File& whole);
  base::Status copy_by_buffer(const Copy& copy, File& whole);
  base::Error error(const char* operation, base::Extent where = {}) const {
    return {.number = errno, .operation = operation, .path = part_, .where = where};
  }

  std::string path_;
  std::string part_;  ///< the temporary file's path
  layout::SubfileMap map_;
  const Progress& progress_;
  Joining how_;
  std::uint64_t size_ = 0, done_ = 0;
  bool share_ = true, copy_ = true;  ///< false once the file system has rejected it
};

base::Status Joiner::run() {
  if (base::Status status = find_size(); !status) return status;
  if (how_ == Joining::if_complete)
    if (base::Status status = require_complete(path_, map_, std::max(size_, map_.recorded_size));
        !status)
      return status;
  auto publication = Publication::of_file(path_, {.mode = 0600});
  if (!publication.ok()) return publication.error();
  part_ = publication->part();
  base::Status status = fill(publication->descriptor());
  if (status.ok()) status = publication->publish(Publication::Existing::replace);
  return status ? remove_subfiles(path_) : status;
}

base::Status Joiner::fill_copy(const std::string& part, int to) {
  part_ = part;
  base::Status status = find_size();
  return status ? fill(to) : status;
}

base::Status Joiner::find_size() {
  const base::Result<std::uint64_t> found = size_of_subfiles(path_, map_);
  if (!found.ok()) return found.error();
  size_ = *found;
  return {};
}

base::Status Joiner::fill(int to) {
  const int descriptor = ::fcntl(to, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (descriptor < 0) return error("fcntl");
  const auto whole = make_posix(part_, descriptor, {});
  if (base::Status status = whole->resize(size_); !status) return status;
  for (std::uint32_t number = 0; number < map_.files; ++number)
    if (base::Status status = copy_part(number, *whole, to); !status) return status;
  struct stat facts{};
  if (::stat(path_.c_str(), &facts) != 0) return error("stat");
  // Without permission to change the owner, the new file stays the user's.
  if (::fchown(to, facts.st_uid, facts.st_gid) != 0 && errno != EPERM) return error("fchown");
  if (::fchmod(to, facts.st_mode & 07777) != 0) return error("fchmod");
  return whole->close();
}

base::Status Joiner::copy_part(std::uint32_t number, File& whole, int to) {
  base::Result<int> opened = open_descriptor(path_of_subfile(path_, number), O_RDONLY, 0);
  if (!opened.ok()) return opened.error().number == ENOENT ? base::Status{} : opened.status();
  const Descriptor from(*opened);
  return copy_data(number, whole, from.number(), to);
}

/// Copies the data of one subfile; holes stay holes.
base::Status Joiner::copy_data(std::uint32_t number, File& whole, int from, int to) {
  struct stat facts{};
  if (::fstat(from, &facts) != 0) return error("fstat");
  const auto end = static_cast<std::uint64_t>(facts.st_size);
  for (std::uint64_t at = 0; at < end;) {
    const off_t data = ::lseek(from, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    // A file system without holes reports data at `at` itself.
    if (data > 0) at = std::max(at, base::round_down(static_cast<std::uint64_t>(data), map_.unit));
    const std::uint64_t length = std::min(base::round_down(at, map_.unit) + map_.unit, end) - at;
    if (base::Status status = move({from, at, to, map_.offset_of(number, at), length}, whole);
        !status)
      return status;
    at += length;
    done_ += length;
    if (progress_) progress_(done_, size_);
  }
  return {};
}

/// Shares the front of a range: whole blocks, and the last block of both files. Returns its bytes.
std::uint64_t Joiner::share_front(const Copy& copy) {
  constexpr std::uint64_t kBlock = 4096;
  const bool last = copy.to_offset + copy.length == size_;
  Copy front = copy;
  if (!last) front.length = base::round_down(copy.length, kBlock);
  if (front.length == 0 || !share_) return 0;
  share_ = share(front);
  return share_ ? front.length : 0;
}

base::Status Joiner::move(Copy copy, File& whole) {
  const std::uint64_t shared = share_front(copy);
  if (shared == copy.length) return {};
  if (!share_ && how_ == Joining::by_sharing) {
    errno = EOPNOTSUPP;
    return error("ioctl FICLONERANGE", base::Extent::at(copy.to_offset, copy.length));
  }
  copy.from_offset += shared;
  copy.to_offset += shared;
  copy.length -= shared;
  if (copy_) {
    const int number = copy_by_kernel(copy);
    if (number == 0) return {};
    if (!cannot_copy(number))
      return base::Error{
          number, "copy_file_range", part_, base::Extent::at(copy.to_offset, copy.length), -1, {}};
    copy_ = false;
  }
  return copy_by_buffer(copy, whole);
}

base::Status Joiner::copy_by_buffer(const Copy& copy, File& whole) {
  constexpr std::uint64_t kLargest = 8 << 20;
  std::vector<std::byte> buffer(std::min(copy.length, kLargest));
  for (std::uint64_t done = 0; done < copy.length;) {
    const std::uint64_t length = std::min<std::uint64_t>(buffer.size(), copy.length - done);
    const ssize_t moved =
        ::pread(copy.from, buffer.data(), length, static_cast<off_t>(copy.from_offset + done));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return error("pread", base::Extent::at(copy.to_offset + done, length));
    const auto got = static_cast<std::uint64_t>(moved);
    if (base::Status status = whole.write(copy.to_offset + done, std::span(buffer).first(got));
        !status)
      return status;
    done += got;
  }
  return {};
}

/// Opens a new file without a name, beside the file of a path if that is possible.
base::Result<int> open_nameless(const std::string& path) {
  auto made = open_descriptor(directory_of(path), O_RDWR | O_TMPFILE, 0600);
  return made.ok() ? std::move(made) : open_descriptor(P_tmpdir, O_RDWR | O_TMPFILE, 0600);
}

}  // namespace

base::Result<int> open_joined_copy(const std::string& path, int flags) {
  const auto held = lock_map(path, false);
  if (!held.ok()) return held.error();
  if (base::Status status = require_complete(path, held->map, held->map.recorded_size); !status)
    return status.error();
  const base::Result<int> made = open_nameless(path);
  if (!made.ok()) return made.error();
  const Descriptor copy(*made);
  const std::string name = "/proc/self/fd/" + std::to_string(copy.number());
  if (base::Status status =
          Joiner(path, held->map, {}, Joining::by_all_means).fill_copy(name, copy.number());
      !status)
    return status.error();
  return open_descriptor(name, O_RDONLY | flags, 0);
}

bool add_subfiles(const std::string& path, struct stat& facts) {
  const auto map = read_map(path);
  if (!map) return false;
  for (std::uint32_t number = 0; number < map->files; ++number) {
    struct stat part{};
    if (::stat(path_of_subfile(path, number).c_str(), &part) != 0) continue;
    const auto whole = map->whole_size(number, static_cast<std::uint64_t>(part.st_size));
    facts.st_size = std::max(facts.st_size, static_cast<off_t>(whole));
    facts.st_blocks += part.st_blocks;
    if (std::pair(part.st_mtim.tv_sec, part.st_mtim.tv_nsec) >
        std::pair(facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec))
      facts.st_mtim = part.st_mtim;
  }
  return true;
}

base::Status join(const std::string& path, const Progress& progress, Joining how) {
  const auto make_error = [&](int number, const char* why) {
    return base::Error{.number = number, .operation = "join", .path = path, .detail = why};
  };
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return make_error(errno, "");
  const auto held = lock_map(path, true);
  if (!held.ok() && held.error().number == EWOULDBLOCK)
    return make_error(EBUSY, "another process has it open, or joins it");
  if (!held.ok() && held.error().number == ENOENT)
    return make_error(EINVAL, "does not consist of subfiles");
  if (!held.ok()) return held.error();
  if (!held->locked && how == Joining::by_sharing)
    return make_error(EOPNOTSUPP, "whether it is open cannot be known");
  return Joiner(path, held->map, progress, how).run();
}

}  // namespace pario::file
