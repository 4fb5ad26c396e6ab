#include "data/records/disk.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/transfers.hpp"

namespace pario::records {

base::Result<Buffer> Buffer::make(std::uint64_t size, Pages pages) {
  Buffer buffer;
  buffer.size_ = base::round_up(size, kAlignment);
  buffer.data_ = buffer.size_ == 0 ? nullptr : base::map_memory(buffer.size_);
  if (size != 0 && buffer.data_ == nullptr)
    return base::Error{.number = ENOMEM,
                       .operation = "mmap",
                       .detail = std::to_string(size) + " bytes of memory for buffers"};
  if (pages == Pages::large)
    ::madvise(buffer.data_, buffer.size_,
              MADV_HUGEPAGE);  // no effect on kernels without large pages
  return buffer;
}

base::Status Buffer::grow(std::uint64_t size, Pages pages) {
  if (size <= size_) return {};
  if (data_ == nullptr) {
    base::Result<Buffer> made = make(size, pages);
    if (made.ok()) *this = std::move(*made);
    return made.status();
  }
  const std::uint64_t larger = base::round_up(size, kAlignment);
  std::byte* const moved = base::remap(data_, size_, larger);
  if (moved == nullptr)
    return base::Error{.number = ENOMEM,
                       .operation = "mremap",
                       .detail = std::to_string(size) + " bytes of memory for buffers"};
  data_ = moved;
  size_ = larger;
  return {};
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) base::unmap(data_, size_);
}

Disk::Disk(Disk&& other) noexcept
    : path_(std::move(other.path_)),
      number_(std::exchange(other.number_, -1)),
      direct_(other.direct_),
      object_(std::move(other.object_)) {}

Disk& Disk::operator=(Disk&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(number_, other.number_);
  std::swap(direct_, other.direct_);
  std::swap(object_, other.object_);
  return *this;
}

Disk::~Disk() {
  if (number_ >= 0) ::close(number_);
}

base::Error Disk::error(const char* operation, base::Extent where) const {
  return {.number = errno, .operation = operation, .path = path_, .where = where};
}

namespace {

FileFacts to_facts(const file::ObjectFacts& object) {
  return {
      .size = object.size, .modified = object.modified, .identity = base::xxh64(object.version)};
}

FileFacts to_facts(const struct stat& facts) {
  return {.size = static_cast<std::uint64_t>(facts.st_size),
          .modified = base::to_nanoseconds(facts.st_mtim),
          .identity = facts.st_ino,
          .regular = S_ISREG(facts.st_mode)};
}

/// Opens a file without blocking on a pipe that has no writer.
int open_file(const std::string& path, int flags, unsigned mode) {
  const int number = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, mode);
  return number >= 0 || errno != EWOULDBLOCK
             ? number
             : ::open(path.c_str(), flags | O_CLOEXEC, mode);  // waits until a lease is released
}

}  // namespace

base::Result<Disk> Disk::open(const std::string& path, int flags, Caching caching, unsigned mode) {
  if (file::is_url(path)) {
    auto object = file::open_object(path);
    if (!object.ok()) return object.error();
    Disk disk(path, -1, false);
    disk.object_ = std::move(*object);
    return disk;
  }
  int number = -1;
  const bool direct =
      caching == Caching::direct && (number = open_file(path, flags | O_DIRECT, mode)) >= 0;
  if (number < 0) number = open_file(path, flags, mode);
  if (number < 0) return base::Error{.number = errno, .operation = "open", .path = path};
  Disk disk(path, number, direct);
  if (::lseek(number, 0, SEEK_CUR) >= 0) return disk;
  return base::Error{.number = errno,
                     .operation = "open",
                     .path = path,
                     .detail = "it is a pipe or the like: expected a file"};
}

base::Result<FileFacts> facts_of(const std::string& path) {
  if (file::is_url(path)) {
    const auto object = file::object_facts(path);
    return object.ok() ? base::Result<FileFacts>(to_facts(*object)) : object.error();
  }
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0)
    return base::Error{.number = errno, .operation = "stat", .path = path};
  return to_facts(facts);
}

base::Result<FileFacts> Disk::facts() const {
  if (object_) return to_facts(object_->facts());
  struct stat facts{};
  if (::fstat(number_, &facts) != 0) return error("stat");
  return to_facts(facts);
}

int open_flag(Caching caching) { return caching == Caching::direct ? O_DIRECT : 0; }

base::Result<Disk> Disk::of(const file::Publication& publication, std::string path) {
  const int number = ::fcntl(publication.descriptor(), F_DUPFD_CLOEXEC, 0);
  if (number < 0) return base::Error{.number = errno, .operation = "fcntl", .path = path};
  return Disk(std::move(path), number, (::fcntl(number, F_GETFL) & O_DIRECT) != 0);
}

base::Result<std::uint64_t> Disk::read(std::uint64_t offset, std::span<std::byte> data) const {
  if (object_) return object_->read(offset, data);
  const base::Moved read = base::move_all(data.size(), [&](std::size_t done) -> ssize_t {
    if (direct_ && done % kAlignment != 0) return 0;  // the end of the file
    return ::pread(number_, data.data() + done, data.size() - done,
                   static_cast<off_t>(offset + done));
  });
  if (read.number != 0)
    return error("pread", base::Extent::at(offset + read.bytes, data.size() - read.bytes));
  return read.bytes;
}

void Disk::expect_sequential() const {
  if (object_)
    object_->expect_sequential();
  else
    ::posix_fadvise(number_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

void Disk::keep_blocks() const {
  if (object_) object_->keep_blocks();
}

bool Disk::in_memory(base::Extent where) const {
  constexpr long kCachestat = 451;  // on all architectures; non-blocking reads (RWF_NOWAIT) would
                                    // trigger read-ahead
  const struct {
    std::uint64_t offset, length;
  } range{where.begin, where.length()};
  struct {
    std::uint64_t pages, dirty, writeback, evicted, recently_evicted;
  } found{};
  if (::syscall(kCachestat, number_, &range, &found, 0) != 0) return false;
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return found.pages * page >=
         base::round_up(where.end, page) - base::round_down(where.begin, page);
}

base::Status Disk::write(std::uint64_t offset, std::span<const std::byte> data) const {
  const base::Moved put = base::pwrite_all(number_, data, offset);
  if (put.bytes == data.size()) return {};
  if (put.number == 0) errno = ENOSPC;
  return error("pwrite", base::Extent::at(offset + put.bytes, data.size() - put.bytes));
}

base::Status Disk::preallocate(std::uint64_t size) const {
  if (size == 0 || ::fallocate(number_, 0, 0, static_cast<off_t>(size)) == 0 ||
      errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)
    return {};
  return error("fallocate", {0, size});
}

void Disk::forget(base::Extent where) const {
  if (!where.empty())
    ::fallocate(number_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(where.begin), static_cast<off_t>(where.length()));
}

bool same_file(const std::string& one, const std::string& other) {
  struct stat first{}, second{};
  if (one == other) return true;
  return ::stat(one.c_str(), &first) == 0 && ::stat(other.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

std::string base_name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace pario::records
