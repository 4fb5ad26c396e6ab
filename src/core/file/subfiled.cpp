#include "core/file/subfiled.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/base/transfers.hpp"
#include "core/file/member.hpp"
#include "core/file/posix.hpp"
#include "core/file/transfer.hpp"

namespace pario::file {
namespace {

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

/// The request to open one of the files.
OpenRequest part_request(const OpenRequest& whole, std::uint32_t number) {
  OpenRequest part = whole;
  part.path = path_of_subfile(whole.path, number);
  part.flags &= ~(O_EXCL | O_TRUNC | O_CREAT);
  if (writes(whole.flags)) part.flags |= O_CREAT;
  part.subfiles = 1;
  return part;
}

/// The least size of the whole; `size_of` returns that of one of the files on disk.
template <class SizeOf>
base::Result<std::uint64_t> whole_of(const layout::SubfileMap& map, SizeOf size_of) {
  std::uint64_t whole = 0;
  for (std::uint32_t number = 0; number < map.files; ++number) {
    const base::Result<std::uint64_t> part = size_of(number);
    if (!part.ok()) return part;
    whole = std::max(whole, map.whole_size(number, *part));
  }
  return whole;
}

/// Calls `act(number, bytes, expected)` for each file on disk with fewer bytes than a whole of
/// `size` bytes implies, up to its first error.
template <class Act>
base::Status for_short_subfiles(const std::string& path, const layout::SubfileMap& map,
                                std::uint64_t size, Act act) {
  for (std::uint32_t number = 0; number < map.files; ++number) {
    const base::Result<std::uint64_t> part = size_of_subfile(path, number);
    if (!part.ok()) return part.error();
    const std::uint64_t expected = map.part_size(number, size);
    if (*part >= expected) continue;
    if (base::Status status = act(number, *part, expected); !status) return status;
  }
  return {};
}

/// A layout in which each of the files is a target, for planners.
layout::StripeLayout layout_of_map(const layout::SubfileMap& map, layout::Kind kind) {
  return {kind, map.unit, map.files};
}

class SubfiledFile final : public Member {
 public:
  SubfiledFile(const OpenRequest& request, std::unique_ptr<File> named, LockedMap locked)
      : Member(request.path, layout_of_map(locked.map, named->layout().kind)),
        request_(request),
        named_(std::move(named)),
        map_(locked.map),
        map_file_(std::move(locked.file)),
        parts_(map_.files) {}

  Capabilities capabilities() const override { return named_->capabilities(); }
  base::Result<std::uint64_t> size() override;
  base::Status resize(std::uint64_t size) override;
  base::Status preallocate(std::uint64_t size) override;
  base::Status sync() override;
  base::Status lock(base::Extent where, bool exclusive) override {
    return named_->lock(where, exclusive);
  }
  base::Result<bool> try_lock(base::Extent where, bool exclusive) override {
    return named_->try_lock(where, exclusive);
  }
  base::Status unlock(base::Extent where) override { return named_->unlock(where); }
  base::Status refresh() override {
    base::Status status = named_->refresh();
    return status ? for_open_parts([](File& part) { return part.refresh(); }) : status;
  }
  base::Status close() override {
    base::Status status = for_open_parts([](File& part) { return part.close(); });
    base::Status named = named_->close();
    map_file_ = Descriptor(-1);
    return status ? named : status;
  }
  std::uint32_t subfiles() const override { return map_.files; }
  std::string striping_trouble() const override { return named_->striping_trouble(); }

 private:
  long attempt_read(std::uint64_t offset, std::span<const iovec> pieces) override;
  long attempt_write(std::uint64_t offset, std::span<const iovec> pieces) override;
  base::Result<std::uint64_t> size_of_part(std::uint32_t number);
  /// One of the files, opened at its first use; ENOENT if it was never written and this file is
  /// only read.
  base::Result<File*> part(std::uint32_t number);
  /// Calls `call` for all open files, also after an error; returns the first error.
  template <class Call>
  base::Status for_open_parts(Call call);

  OpenRequest request_;
  std::unique_ptr<File> named_;
  layout::SubfileMap map_;
  Descriptor map_file_;
  std::mutex mutex_;  ///< guards the pointers
  std::vector<std::unique_ptr<File>> parts_;
};

base::Result<File*> SubfiledFile::part(std::uint32_t number) {
  const std::scoped_lock guard(mutex_);
  if (!parts_[number]) {
    auto opened = open(part_request(request_, number));
    if (!opened.ok()) return opened.error();
    parts_[number] = std::move(*opened);
  }
  return parts_[number].get();
}

template <class Call>
base::Status SubfiledFile::for_open_parts(Call call) {
  const std::scoped_lock guard(mutex_);
  base::Status first;
  for (const auto& part : parts_) {
    base::Status status = part ? call(*part) : base::Status{};
    if (first.ok() && !status.ok()) first = std::move(status);
  }
  return first;
}

base::Result<std::uint64_t> SubfiledFile::size_of_part(std::uint32_t number) {
  {
    const std::scoped_lock guard(mutex_);
    if (parts_[number]) return parts_[number]->size();
  }
  return size_of_subfile(path(), number);
}

base::Result<std::uint64_t> SubfiledFile::size() {
  return whole_of(map_, [this](std::uint32_t number) { return size_of_part(number); });
}

base::Status SubfiledFile::resize(std::uint64_t size) {
  if (size > INT64_MAX) return error(EFBIG, "ftruncate", {0, size});
  if (base::Status status = lower_recorded_size(path(), size); !status) return status;
  for (std::uint32_t number = 0; number < map_.files; ++number) {
    base::Result<std::uint64_t> now = size_of_part(number);
    if (!now.ok()) return now.error();
    if (*now == map_.part_size(number, size)) continue;
    base::Result<File*> opened = part(number);
    if (!opened.ok()) return opened.error();
    if (base::Status status = (*opened)->resize(map_.part_size(number, size)); !status)
      return status;
  }
  return {};
}

base::Status SubfiledFile::preallocate(std::uint64_t size) {
  for (std::uint32_t number = 0; number < map_.files; ++number) {
    if (map_.part_size(number, size) == 0) continue;
    base::Result<File*> opened = part(number);
    if (!opened.ok()) return opened.error();
    if (base::Status status = (*opened)->preallocate(map_.part_size(number, size)); !status)
      return status;
  }
  return {};
}

/// Syncs all files that exist, also those that this process has not opened: its node has one
/// caller, and other processes write other files.
base::Status SubfiledFile::sync() {
  base::Status first;
  for (std::uint32_t number = 0; number < map_.files; ++number) {
    if (::access(path_of_subfile(path(), number).c_str(), F_OK) != 0) continue;
    const base::Result<File*> opened = part(number);
    base::Status status = opened.ok() ? (*opened)->sync() : opened.status();
    if (first.ok() && !status.ok()) first = std::move(status);
  }
  return first;
}

/// Ranges beyond the end of a part but within the whole file read as zeros.
long SubfiledFile::attempt_read(std::uint64_t offset, std::span<const iovec> pieces) {
  const auto place = map_.place_of(offset);
  std::vector<iovec> now = first_bytes(pieces, place.length);
  const std::uint64_t wanted = total_length(now);
  base::Result<File*> from = part(place.file);
  if (!from.ok() && from.error().number != ENOENT) return -from.error().number;
  std::vector<iovec> used = now;
  const long moved = from.ok() ? as_attempt((*from)->read_vector(place.offset, used)) : 0;
  if (moved < 0 || static_cast<std::uint64_t>(moved) == wanted) return moved;
  base::Result<std::uint64_t> whole = size();
  if (!whole.ok()) return -whole.error().number;
  const std::uint64_t there = std::min(std::max(*whole, offset) - offset, wanted);
  if (there <= static_cast<std::uint64_t>(moved)) return moved;
  for (const iovec& hole : first_bytes(without_front(now, static_cast<std::uint64_t>(moved)),
                                       there - static_cast<std::uint64_t>(moved)))
    std::memset(hole.iov_base, 0, hole.iov_len);
  return static_cast<long>(there);
}

long SubfiledFile::attempt_write(std::uint64_t offset, std::span<const iovec> pieces) {
  const auto place = map_.place_of(offset);
  std::vector<iovec> now = first_bytes(pieces, place.length);
  const std::uint64_t length = total_length(now);
  base::Result<File*> to = part(place.file);
  if (!to.ok()) return -to.error().number;
  return as_attempt((*to)->write_vector(place.offset, now), length);
}

std::string path_of_map(const std::string& path) { return directory_of_subfiles(path) + "/map"; }

/// Calls flock(2), repeated after EINTR: returns 0 or the errno.
int lock_whole(int descriptor, int operation) {
  while (::flock(descriptor, operation) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

base::Error no_map(const std::string& path) {
  return {.number = ENOENT, .operation = "open", .path = path_of_map(path)};
}

std::optional<layout::SubfileMap> map_in(int descriptor) {
  std::array<char, 256> text;
  const base::Moved moved = base::pread_all(descriptor, std::as_writable_bytes(std::span(text)), 0);
  return moved.number == 0 ? layout::SubfileMap::parse({text.data(), moved.bytes}) : std::nullopt;
}

base::Status overwrite_map(const std::string& path, int descriptor, layout::SubfileMap map) {
  const std::string text = map.text();
  const base::Moved moved = base::pwrite_all(descriptor, std::as_bytes(std::span(text)), 0);
  if (moved.number == 0 && moved.bytes == text.size()) return {};
  return base::Error{.number = moved.number == 0 ? EIO : moved.number,
                     .operation = "pwrite",
                     .path = path_of_map(path)};
}

/// Makes a file on disk longer, and creates it if it was never written; the new bytes are zeros.
base::Status extend_subfile(const std::string& path, std::uint32_t number, std::uint64_t size) {
  struct stat whole{};
  if (::stat(path.c_str(), &whole) != 0) return base::path_error("stat", path);
  auto part = open({.path = path_of_subfile(path, number),
                    .flags = O_WRONLY | O_CREAT,
                    .mode = whole.st_mode & 07777});
  if (!part.ok()) return part.error();
  base::Status status = part.value()->resize(size);
  return status ? part.value()->close() : status;
}

}  // namespace

base::Status lower_recorded_size(const std::string& path, std::uint64_t size) {
  base::Result<int> opened = open_descriptor(path_of_map(path), O_RDWR, 0);
  if (!opened.ok()) return opened.error().number == ENOENT ? base::Status{} : opened.status();
  const Descriptor file(*opened);
  auto map = map_in(file.number());
  if (!map || map->recorded_size <= size) return {};
  map->recorded_size = size;
  return overwrite_map(path, file.number(), *map);
}

base::Status record_size(const std::string& path) {
  auto held = lock_map(path, true);
  if (!held.ok()) return held.error();
  if (!held->locked) return base::Error{.number = EOPNOTSUPP, .operation = "flock", .path = path};
  const base::Result<std::uint64_t> size = size_of_subfiles(path, held->map);
  if (!size.ok()) return size.error();
  const auto extend = [&](std::uint32_t number, std::uint64_t, std::uint64_t expected) {
    return extend_subfile(path, number, expected);
  };
  if (base::Status status = for_short_subfiles(path, held->map, *size, extend); !status)
    return status;
  held->map.recorded_size = *size;
  return overwrite_map(path, held->file.number(), held->map);
}

bool is_removed(int descriptor) {
  struct stat facts{};
  return ::fstat(descriptor, &facts) == 0 && facts.st_nlink == 0;
}

std::string directory_of_subfiles(const std::string& path) { return path + ".subfiles"; }

std::string path_of_subfile(const std::string& path, std::uint32_t number) {
  return directory_of_subfiles(path) + "/" + std::to_string(number);
}

base::Result<std::uint64_t> size_of_subfile(const std::string& path, std::uint32_t number) {
  struct stat facts{};
  const std::string part = path_of_subfile(path, number);
  if (::stat(part.c_str(), &facts) == 0) return static_cast<std::uint64_t>(facts.st_size);
  if (errno == ENOENT) return std::uint64_t{0};
  return base::Error{.number = errno, .operation = "stat", .path = part};
}

base::Result<std::uint64_t> size_of_subfiles(const std::string& path,
                                             const layout::SubfileMap& map) {
  return whole_of(map, [&](std::uint32_t number) { return size_of_subfile(path, number); });
}

base::Status require_complete(const std::string& path, const layout::SubfileMap& map,
                              std::uint64_t size) {
  const bool known = size <= map.recorded_size;
  const auto refuse = [&](std::uint32_t number, std::uint64_t part, std::uint64_t expected) {
    const std::string bytes = std::to_string(expected);
    const std::string why = known ? "; it had at least " + bytes + " when it was written"
                                  : "; the sizes of the other subfiles imply at least " + bytes;
    const std::string remedy = known ? ". Restore it, or, to read zeros in its place, run"
                                     : ". If the others were never written, run";
    return base::Status(base::Error{.number = EIO,
                                    .operation = "open",
                                    .path = path_of_subfile(path, number),
                                    .detail = "has " + std::to_string(part) +
                                              " bytes or is missing" + why + remedy +
                                              " `truncate -s " + bytes + "` on it"});
  };
  return for_short_subfiles(path, map, size, refuse);
}

std::optional<layout::SubfileMap> read_map(const std::string& path) {
  base::Result<int> opened = open_descriptor(path_of_map(path), O_RDONLY, 0);
  if (!opened.ok()) return std::nullopt;
  const Descriptor file(*opened);
  return map_in(file.number());
}

/// Locks and reads the map. During the wait for the lock, a join may have removed the map.
base::Result<LockedMap> lock_map(const std::string& path, bool exclusive) {
  // NFS requires a writable descriptor for exclusive locks.
  base::Result<int> opened = open_descriptor(path_of_map(path), exclusive ? O_RDWR : O_RDONLY, 0);
  if (!opened.ok()) return opened.error();
  Descriptor file(*opened);
  const int failure = lock_whole(file.number(), exclusive ? LOCK_EX | LOCK_NB : LOCK_SH);
  if (failure == EWOULDBLOCK)
    return base::Error{.number = EWOULDBLOCK, .operation = "flock", .path = path_of_map(path)};
  const auto map = map_in(file.number());
  struct stat facts{};
  if (::fstat(file.number(), &facts) != 0) return base::path_error("fstat", path_of_map(path));
  if (facts.st_nlink == 0 || (!map && !exclusive && facts.st_size == 0)) return no_map(path);
  if (!map)
    return base::Error{.number = EBADMSG,
                       .operation = "open",
                       .path = path_of_map(path),
                       .detail = "is damaged; expected \"pario subfiles 1\", files and unit"};
  return LockedMap{std::move(file), *map, failure == 0};
}

base::Status write_map(const std::string& path, const layout::SubfileMap& map) {
  const std::string directory = directory_of_subfiles(path);
  if (::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST)
    return base::Error{.number = errno, .operation = "mkdir", .path = directory};
  auto file = open({.path = path_of_map(path), .flags = O_WRONLY | O_CREAT | O_EXCL});
  if (!file.ok()) return file.error();
  const std::string text = map.text();
  base::Status status = file.value()->write(0, std::as_bytes(std::span(text)));
  if (status.ok()) status = file.value()->sync();
  return status.ok() ? file.value()->close() : status;
}

base::Status remove_subfiles(const std::string& path) {
  const auto map = read_map(path);
  if (!map) return {};
  const auto remove_file = [](const std::string& name) {
    return ::unlink(name.c_str()) == 0 || errno == ENOENT;
  };
  for (std::uint32_t number = 0; number < map->files; ++number) {
    const std::string part = path_of_subfile(path, number);
    if (!remove_file(part))
      return base::Error{.number = errno, .operation = "unlink", .path = part};
  }
  // Removes the map last: after an interruption the next removal still knows the files.
  if (!remove_file(path_of_map(path)))
    return base::Error{.number = errno, .operation = "unlink", .path = path_of_map(path)};
  ::rmdir(directory_of_subfiles(path).c_str());
  return {};
}

std::unique_ptr<File> make_subfiled(const OpenRequest& request, std::unique_ptr<File> named,
                                    LockedMap locked) {
  return std::make_unique<SubfiledFile>(request, std::move(named), std::move(locked));
}

}  // namespace pario::file
