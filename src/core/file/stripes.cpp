#include "core/file/stripes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>

#include "core/file/attributes.hpp"
#include "core/file/beegfs.hpp"
#include "core/file/new_file.hpp"
#include "core/file/posix.hpp"
#include "core/file/publication.hpp"
#include "core/file/subfiled.hpp"

namespace pario::file {
namespace {

using layout::Kind;
using Bytes = std::vector<std::byte>;

/// The attribute's value; nothing, and errno, if there is none.
std::optional<Bytes> attribute_of(const std::string& path, const char* name) {
  constexpr std::size_t kLongest = 64 << 10;
  Bytes data(kLongest);
  const ssize_t size = ::getxattr(path.c_str(), name, data.data(), data.size());
  if (size < 0) return std::nullopt;
  data.resize(static_cast<std::size_t>(size));
  return data;
}

bool is_on(const std::string& path, dev_t device) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 && facts.st_dev == device;
}

/// True for the top directory of its file system.
bool is_root(const std::string& directory, dev_t device) {
  return directory == "/" || !is_on(directory_of(directory), device);
}

/// The top directory of a path's file system; the path itself if unknown.
std::string root_of(const std::string& path) {
  std::string above = real_path(path);
  struct stat here{};
  if (::stat(above.c_str(), &here) != 0) return path;
  while (!is_root(above, here.st_dev)) above = directory_of(above);
  return above;
}

/// The kind of a path's file system. Lustre and Ceph also exist as FUSE file systems.
Kind kind_of(const std::string& path) {
  struct statfs system{};
  if (::statfs(path.c_str(), &system) != 0) return Kind::unknown;
  const Kind kind = layout::kind_of_magic(static_cast<std::uint32_t>(system.f_type));
  if (kind != Kind::fuse) return kind;
  if (attribute_of(path, layout::kCephAttribute) || attribute_of(path, "ceph.dir.entries"))
    return Kind::ceph;
  const bool lustre = attribute_of(path, layout::kLustreAttribute) ||
                      attribute_of(root_of(path), layout::kLustreAttribute);
  return lustre ? Kind::lustre : Kind::fuse;
}

const char* attribute_name(Kind kind, bool directory) {
  if (kind == Kind::ceph)
    return directory ? layout::kCephDirectoryAttribute : layout::kCephAttribute;
  return layout::kLustreAttribute;
}

bool has_attributes(Kind kind) {
  return kind == Kind::ceph || kind == Kind::lustre || kind == Kind::fuse;
}

layout::StripedFile striped_by_attribute(const std::string& path, const Stripes& facts) {
  const auto value = attribute_of(path, attribute_name(facts.kind, facts.directory));
  return value ? layout::read_striped_file(*value) : layout::StripedFile{};
}

/// Fills in the stripes of a directory without its own: those of the nearest directory above. On
/// Lustre those of the file system's root: other directories pass theirs on only when a directory
/// is created.
void inherit(const std::string& path, Stripes& facts) {
  std::string above = real_path(path);
  struct stat here{};
  if (::stat(above.c_str(), &here) != 0) return;
  while (!is_root(above, here.st_dev)) {
    above = directory_of(above);
    layout::StripedFile found = striped_by_attribute(above, facts);
    if (found.parts.empty() || (facts.kind == Kind::lustre && !is_root(above, here.st_dev)))
      continue;
    facts.striped = std::move(found);
    facts.from = above;
    return;
  }
}

layout::StripedFile striped_on_beegfs(const std::string& path) {
  base::Result<int> opened = open_descriptor(path, O_RDONLY | O_NONBLOCK, 0);
  if (!opened.ok()) return {};
  const Descriptor file(*opened);
  layout::StripedPart part;
  part.striping = beegfs::striping_of(file.number());
  return part.striping.unit == 0 ? layout::StripedFile{} : layout::StripedFile{{part}, 0};
}

base::Status make_on_beegfs(const std::string& path, const StripesRequest& request) {
  base::Result<int> opened = open_descriptor(directory_of(path), O_RDONLY | O_DIRECTORY, 0);
  if (!opened.ok()) return opened.error();
  const Descriptor directory(*opened);
  const std::string name = path.substr(path.rfind('/') + 1);
  const long made =
      beegfs::make(directory.number(),
                   beegfs::new_file(name.c_str(), request.mode, request.parts.front().striping));
  return made == 0 ? base::Status{}
                   : base::path_error("ioctl BEEGFS_IOC_MKFILE_STRIPEHINTS", path,
                                      static_cast<int>(-made));
}

/// The reason why the file system cannot do this; empty if it can.
std::string missing_feature(Kind kind, const StripesRequest& request) {
  const layout::StripedPart& part = request.parts.front();
  const bool placed = part.striping.start >= 0 || !part.targets.empty(),
             parts = request.parts.size() > 1;
  if (kind != Kind::ceph && request.object_size != 0) return "only Ceph has a size of objects";
  if (kind == Kind::lustre || kind == Kind::fuse) return {};
  if (parts) return "only Lustre has composite files";
  if (part.overstriped) return "only Lustre has overstriped files";
  if (kind == Kind::ceph && placed)
    return "Ceph has no first target and no list of targets: it places objects by their names";
  if (kind == Kind::ceph && part.striping.targets == layout::kAllTargets)
    return "Ceph does not tell how many targets there are";
  if (placed) return "the targets of a file cannot be chosen there";
  return kind == Kind::beegfs && !part.pool.empty() ? "the pool of a file cannot be chosen there"
                                                    : "";
}

/// The layout of new files in a directory on Ceph: its own, or that of the nearest directory above.
Bytes nearest_layout(const std::string& directory) {
  for (std::string above = real_path(directory); !above.empty();
       above = above == "/" ? "" : directory_of(above))
    if (auto value = attribute_of(above, layout::kCephDirectoryAttribute)) return *value;
  return {};
}

Bytes value_for(const std::string& path, Kind kind, bool directory, const StripesRequest& request) {
  if (kind != Kind::ceph) return layout::lustre_attribute(request.parts);
  const layout::StripedPart& part = request.parts.front();
  const Bytes now = directory ? nearest_layout(path)
                              : attribute_of(path, layout::kCephAttribute).value_or(Bytes{});
  base::Text<512> text;
  layout::add_ceph_attribute(text, part.striping, now, {request.object_size, part.pool});
  const auto raw = std::as_bytes(std::span(text.view()));
  return {raw.begin(), raw.end()};
}

base::Status set_attribute(const std::string& path, Kind kind, bool directory,
                           const StripesRequest& request) {
  const Bytes value = value_for(path, kind, directory, request);
  const char* name = attribute_name(kind, directory);
  if (::setxattr(path.c_str(), name, value.data(), value.size(), 0) == 0) return {};
  const bool unknown = errno == ENOTSUP;
  return base::path_error(unknown ? "stripe" : "setxattr", path, errno,
                          unknown ? "its file system has no stripes that can be set" : name);
}

/// Creates an empty file, or checks that an existing one is empty; sets `created`.
base::Status make_empty(const std::string& path, Kind kind, unsigned mode, bool& created) {
  base::Result<int> opened = open_descriptor(
      path, O_RDWR | O_CREAT | O_EXCL | (kind == Kind::ceph ? 0 : kDelayCreate), mode);
  created = opened.ok();
  if (created) ::close(*opened);
  if (created) return {};
  if (opened.error().number != EEXIST) return opened.error();
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return base::path_error("stat", path, errno);
  if (!S_ISREG(facts.st_mode))
    return base::path_error("stripe", path, EINVAL, "neither a file nor a directory");
  if (facts.st_size > 0)
    return base::path_error("stripe", path, EEXIST,
                            "it has bytes already, which stay where they are");
  return {};
}

base::Status stripe_file(const std::string& path, Kind kind, const StripesRequest& request) {
  bool created = false;
  if (kind == Kind::beegfs) return make_on_beegfs(path, request);
  base::Status status = make_empty(path, kind, request.mode, created);
  if (status.ok()) status = set_attribute(path, kind, false, request);
  if (!status.ok() && created) ::unlink(path.c_str());
  return status;
}

base::Status no_stripes(Kind kind, const std::string& path) {
  return base::path_error("stripe", path, ENOTSUP,
                          std::string("a file system of kind ") + layout::traits(kind).name +
                              " has no stripes that can be set");
}

}  // namespace

base::Result<Stripes> stripes_of(const std::string& path) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return base::path_error("stat", path, errno);
  Stripes out{
      kind_of(path), S_ISDIR(facts.st_mode), static_cast<std::uint64_t>(facts.st_blksize), {}, {}};
  if (out.kind == Kind::beegfs && !out.directory) out.striped = striped_on_beegfs(path);
  if (!has_attributes(out.kind)) return out;
  out.striped = striped_by_attribute(path, out);
  if (out.directory && out.striped.parts.empty()) inherit(path, out);
  return out;
}

base::Result<Stripes> set_stripes(const std::string& path, const StripesRequest& request) {
  struct stat facts{};
  const bool directory = ::stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
  const Kind kind = kind_of(directory ? path : directory_of(path));
  if (!has_attributes(kind) && kind != Kind::beegfs) return no_stripes(kind, path).error();
  if (const std::string reason = missing_feature(kind, request); !reason.empty())
    return base::path_error("stripe", path, EINVAL, reason);
  if (directory && kind == Kind::beegfs)
    return base::path_error("stripe", path, ENOTSUP,
                            "BeeGFS: beegfs-ctl --setpattern sets that of a directory");
  const base::Status status =
      directory ? set_attribute(path, kind, true, request) : stripe_file(path, kind, request);
  if (!status.ok()) return status.error();
  return stripes_of(path);
}

base::Status inherit_stripes(const std::string& directory) {
  const Kind kind = kind_of(directory);
  if (!has_attributes(kind)) return no_stripes(kind, directory);
  const char* name = attribute_name(kind, true);
  if (::removexattr(directory.c_str(), name) == 0 || errno == ENODATA) return {};
  return base::path_error("removexattr", directory, errno, name);
}

std::uint32_t target_count(const std::string& directory) {
  if (kind_of(directory) != Kind::lustre) return 0;
  base::Result<int> opened = open_descriptor(directory, O_RDONLY | O_DIRECTORY, 0);
  if (!opened.ok()) return 0;
  const Descriptor descriptor(*opened);
  return target_count(descriptor.number());
}

layout::Striping wanted_striping(const std::string& path, const hints::StripingHints& hints,
                                 std::uint32_t writers) {
  if (hints.pario_expected_size == 0) return wanted_striping(hints, writers, 0, -1);
  const std::string directory = directory_of(path);
  base::Result<int> opened = open_descriptor(directory, O_PATH | O_DIRECTORY, 0);
  const Descriptor descriptor(opened.ok() ? *opened : -1);
  return wanted_striping(hints, writers, target_count(directory), descriptor.number());
}

namespace {

/// Reads a number from a file; 0 if there is none.
std::uint64_t read_number(const std::filesystem::path& path) {
  std::uint64_t number = 0;
  std::ifstream(path) >> number;
  return number;
}

}  // namespace

DirectSizes direct_sizes_of_lustre(const std::string& root) {
  DirectSizes sizes;
  std::error_code ignored;
  for (const auto& mount : std::filesystem::directory_iterator(root, ignored)) {
    if (read_number(mount.path() / "hybrid_io") == 0) continue;
    sizes.write =
        std::max(sizes.write, read_number(mount.path() / "hybrid_io_write_threshold_bytes"));
    sizes.read = std::max(sizes.read, read_number(mount.path() / "hybrid_io_read_threshold_bytes"));
  }
  return sizes;
}

}  // namespace pario::file
