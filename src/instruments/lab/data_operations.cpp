#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "instruments/lab/caller.hpp"

namespace pario::lab {
namespace {

/// Lustre's O_LOV_DELAY_CREATE, which creates a file without stripes, as FUSE passes it on: without
/// O_NOCTTY.
constexpr int kDelayCreate = 0x2000;

int open_handle(fuse_file_info* info, std::shared_ptr<LabFile> file) {
  if ((info->flags & O_TRUNC) != 0)
    if (const int cut = file->truncate(caller(), 0); cut < 0) return cut;
  info->fh = reinterpret_cast<std::uint64_t>(new Handle(std::move(file)));
  return 0;
}

int do_create(const char* path, mode_t mode, fuse_file_info* info) {
  const std::string name = real(path);
  Descriptor tree(
      ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (info->flags & O_EXCL), mode));
  if (!tree.is_open()) return -errno;
  const fuse_context* context = ::fuse_get_context();
  if (::geteuid() == 0 && ::fchown(tree.number(), context->uid, context->gid) < 0) return -errno;
  auto file = lab().files.find_or_open(std::move(tree));
  if (!file) return -errno;
  const int assigned =
      (info->flags & kDelayCreate) != 0 ? 0 : assign_stripes(lab(), name, caller(), *file);
  return assigned < 0 ? assigned : open_handle(info, std::move(file));
}

int do_open(const char* path, fuse_file_info* info) {
  const std::string name = real(path);
  auto file = lab().files.find_or_open(name);
  if (!file) return -errno;
  if ((info->flags & O_ACCMODE) != O_RDONLY)
    if (const int assigned = assign_stripes(lab(), name, caller(), *file); assigned < 0)
      return assigned;
  return open_handle(info, std::move(file));
}

int do_read(const char*, char* data, std::size_t size, off_t offset, fuse_file_info* info) {
  return static_cast<int>(
      file_of(info)->read(caller(), {data, size}, static_cast<std::uint64_t>(offset)));
}

int do_write(const char*, const char* data, std::size_t size, off_t offset, fuse_file_info* info) {
  const bool append = (info->flags & O_APPEND) != 0;
  return static_cast<int>(
      file_of(info)->write(caller(), {data, size}, static_cast<std::uint64_t>(offset), append));
}

int do_truncate(const char* path, off_t size, fuse_file_info* info) {
  const std::shared_ptr<LabFile> named =
      info == nullptr ? lab().files.find_or_open(real(path)) : nullptr;
  LabFile* file = info != nullptr ? file_of(info) : named.get();
  return file == nullptr ? -errno : file->truncate(caller(), static_cast<std::uint64_t>(size));
}

int do_fallocate(const char*, int mode, off_t offset, off_t length, fuse_file_info* info) {
  const auto extent =
      base::Extent::at(static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(length));
  if (mode == 0) return file_of(info)->grow(extent.end);
  if (mode == FALLOC_FL_KEEP_SIZE) return 0;
  return mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) ? file_of(info)->punch(extent)
                                                              : -EOPNOTSUPP;
}

off_t do_lseek(const char*, off_t offset, int whence, fuse_file_info* info) {
  return file_of(info)->seek(static_cast<std::uint64_t>(offset), whence);
}

int do_flush(const char*, fuse_file_info* info) {
  file_of(info)->wait_for_writes(caller());
  return 0;
}

int do_fsync(const char*, int, fuse_file_info* info) { return do_flush(nullptr, info); }

int do_release(const char*, fuse_file_info* info) {
  const std::unique_ptr<Handle> handle(reinterpret_cast<Handle*>(info->fh));
  return 0;
}

}  // namespace

void add_data_operations(fuse_operations& all) {
  all.create = counted<do_create, MetadataKind::open>;
  all.open = counted<do_open, MetadataKind::open>;
  all.read = do_read;
  all.write = do_write;
  all.truncate = do_truncate;
  all.fallocate = do_fallocate;
  all.lseek = do_lseek;
  all.flush = do_flush;
  all.fsync = do_fsync;
  all.release = do_release;
}

}  // namespace pario::lab
