#include "instruments/lab/operations.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "instruments/lab/caller.hpp"

namespace pario::lab {
namespace {

/// Makes the caller the owner of a new file if this process may change owners.
int give_to_caller(const std::string& path) {
  const fuse_context* context = ::fuse_get_context();
  if (::geteuid() == 0) return result(::lchown(path.c_str(), context->uid, context->gid));
  return 0;
}

void add_blocks(const Store& store, struct stat& facts, const Placement& placement) {
  facts.st_blocks = 0;
  facts.st_blksize = static_cast<blksize_t>(placement.unit());
  for (const auto& object : placement.objects(static_cast<std::uint64_t>(facts.st_size)))
    facts.st_blocks += static_cast<blkcnt_t>(
        store.blocks_of_object(object.target, placement.file_name(object.name)));
}

int do_getattr(const char* path, struct stat* facts, fuse_file_info* info) {
  const LabFile* file = info != nullptr ? file_of(info) : nullptr;
  const std::string name = file == nullptr ? real(path) : std::string{};
  if ((file != nullptr ? ::fstat(file->tree(), facts) : ::lstat(name.c_str(), facts)) != 0)
    return -errno;
  if (!S_ISREG(facts->st_mode)) return 0;
  const auto record = file != nullptr ? lab().store.record(file->tree()) : lab().store.record(name);
  if (const auto placement = record ? Placement::read(*record) : std::nullopt)
    add_blocks(lab().store, *facts, *placement);
  return 0;
}

int do_mkdir(const char* path, mode_t mode) {
  if (::mkdir(real(path).c_str(), mode) < 0) return -errno;
  inherit_stripes(lab(), real(path));
  return give_to_caller(real(path));
}

int do_mknod(const char* path, mode_t mode, dev_t device) {
  return ::mknod(real(path).c_str(), mode, device) < 0 ? -errno : give_to_caller(real(path));
}

int do_symlink(const char* target, const char* path) {
  return ::symlink(target, real(path).c_str()) < 0 ? -errno : give_to_caller(real(path));
}

int do_readlink(const char* path, char* target, std::size_t size) {
  std::memset(target, 0, size);
  return ::readlink(real(path).c_str(), target, size - 1) < 0 ? -errno : 0;
}

/// Calls `act`, which removes the name `path`; deletes the objects with the last name.
template <class Act>
int remove_name(const std::string& path, const Act& act) {
  const auto file = lab().files.find_or_open(path);
  if (act() < 0) return -errno;
  struct stat facts{};
  if (file && ::fstat(file->tree(), &facts) == 0 && facts.st_nlink == 0)
    lab().files.remove(file, caller());
  return 0;
}

int do_unlink(const char* path) {
  const std::string name = real(path);
  return remove_name(name, [&] { return ::unlink(name.c_str()); });
}

int do_rename(const char* from, const char* to, unsigned flags) {
  const std::string old = real(from), now = real(to);
  return remove_name(
      now, [&] { return ::renameat2(AT_FDCWD, old.c_str(), AT_FDCWD, now.c_str(), flags); });
}

int do_rmdir(const char* path) { return result(::rmdir(real(path).c_str())); }
int do_link(const char* from, const char* to) {
  return result(::link(real(from).c_str(), real(to).c_str()));
}

int do_chmod(const char* path, mode_t mode, fuse_file_info* info) {
  return result(info != nullptr ? ::fchmod(file_of(info)->tree(), mode)
                                : ::chmod(real(path).c_str(), mode));
}

int do_chown(const char* path, uid_t user, gid_t group, fuse_file_info* info) {
  return result(info != nullptr ? ::fchown(file_of(info)->tree(), user, group)
                                : ::lchown(real(path).c_str(), user, group));
}

int do_utimens(const char* path, const timespec times[2], fuse_file_info* info) {
  return result(info != nullptr
                    ? ::futimens(file_of(info)->tree(), times)
                    : ::utimensat(AT_FDCWD, real(path).c_str(), times, AT_SYMLINK_NOFOLLOW));
}

int do_statfs(const char*, struct statvfs* facts) {
  return result(::statvfs(lab().store.path("").c_str(), facts));
}

int do_opendir(const char* path, fuse_file_info* info) {
  DIR* directory = ::opendir(real(path).c_str());
  if (directory == nullptr) return -errno;
  info->fh = reinterpret_cast<std::uint64_t>(directory);
  return 0;
}

int do_readdir(const char*, void* room, fuse_fill_dir_t add, off_t, fuse_file_info* info,
               fuse_readdir_flags) {
  auto* directory = reinterpret_cast<DIR*>(info->fh);
  ::rewinddir(directory);
  while (const dirent* entry = ::readdir(directory)) {
    struct stat facts{};
    facts.st_ino = entry->d_ino;
    facts.st_mode = static_cast<mode_t>(DTTOIF(entry->d_type));
    if (add(room, entry->d_name, &facts, 0, fuse_fill_dir_flags{}) != 0) return -ENOMEM;
  }
  return 0;
}

int do_releasedir(const char*, fuse_file_info* info) {
  return result(::closedir(reinterpret_cast<DIR*>(info->fh)));
}

void* do_init(fuse_conn_info* connection, fuse_config* config) {
  connection->max_background = 64;
  config->use_ino = config->nullpath_ok = 1;
  const bool cache = lab().settings.cache;
  config->direct_io = cache ? 0 : 1;
  config->kernel_cache = cache ? 1 : 0;
  config->entry_timeout = config->attr_timeout = cache ? 1.0 : 0.0;
  return &lab();
}

}  // namespace

fuse_operations operations() {
  fuse_operations all{};
  all.init = do_init;
  all.getattr = counted<do_getattr, MetadataKind::lookup>;
  all.mkdir = counted<do_mkdir, MetadataKind::change>;
  all.mknod = counted<do_mknod, MetadataKind::change>;
  all.symlink = counted<do_symlink, MetadataKind::change>;
  all.readlink = counted<do_readlink, MetadataKind::link>;
  all.unlink = counted<do_unlink, MetadataKind::change>;
  all.rename = counted<do_rename, MetadataKind::change>;
  all.rmdir = counted<do_rmdir, MetadataKind::change>;
  all.link = counted<do_link, MetadataKind::change>;
  all.chmod = counted<do_chmod, MetadataKind::change>;
  all.chown = counted<do_chown, MetadataKind::change>;
  all.utimens = counted<do_utimens, MetadataKind::change>;
  all.statfs = do_statfs;
  all.opendir = counted<do_opendir, MetadataKind::list>;
  all.readdir = do_readdir;
  all.releasedir = do_releasedir;
  add_data_operations(all);
  add_attribute_operations(all);
  return all;
}

}  // namespace pario::lab
