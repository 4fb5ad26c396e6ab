// The complete striping of files, for tools: read and set. A public header. file::open() itself
// sets count, unit and first target of the files that it creates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "core/hints/hints.hpp"
#include "core/layout/layout.hpp"

namespace pario::file {

struct Stripes {
  layout::Kind kind = layout::Kind::unknown;  ///< lustre or ceph also for a FUSE file system with
                                              ///< their attributes
  bool directory = false;                     ///< true: `striped` is that of new files in it
  std::uint64_t block = 0;                    ///< st_blksize
  std::string from =
      {};  ///< the directory above that a directory inherits its stripes from; empty: its own
  layout::StripedFile striped = {};  ///< no parts: unknown, or the file system has none
};
/// Reads the stripes of a file or directory from the file system. An Error only if stat(2) fails.
base::Result<Stripes> stripes_of(const std::string& path);

/// The bytes from which a call passes the page cache by; 0: never.
struct DirectSizes {
  std::uint64_t write = 0, read = 0;
  bool operator==(const DirectSizes&) const = default;
};
/// Reads the sizes of Lustre's hybrid I/O on this node (2.17), from the directories of its mounts
/// below `root`; of several mounts that use it, the largest sizes.
DirectSizes direct_sizes_of_lustre(const std::string& root);
/// The directory of the kernel with a directory for each mount of Lustre.
inline constexpr const char* kLustreMounts = "/sys/fs/lustre/llite";

struct StripesRequest {
  std::vector<layout::StripedPart> parts =
      {};  ///< one, or on Lustre several that follow each other from 0 to the end
  std::uint64_t object_size = 0;  ///< of Ceph; 0: unchanged
  unsigned mode = 0666;           ///< of a new file, less the umask
};
/// Sets the stripes of a new file, which it creates, of an empty file, or of new files in a
/// directory; returns the stripes read back. File systems may round and may keep a file's stripes:
/// the caller compares. EEXIST: the file has bytes. ENOTSUP: the file system has no stripes that
/// can be set; EINVAL: not these. After an Error no new file exists.
base::Result<Stripes> set_stripes(const std::string& path, const StripesRequest& request);
/// Removes a directory's own stripes: it inherits those of the one above again.
base::Status inherit_stripes(const std::string& directory);

/// The number of targets of a directory's file system; 0 if unknown.
std::uint32_t target_count(const std::string& directory);

/// Returns the striping that hints request for a new file of that name, opened by `writers`
/// processes.
layout::Striping wanted_striping(const std::string& path, const hints::StripingHints& hints,
                                 std::uint32_t writers);

/// A limit on the bytes and files that a user, a group or a directory may store.
struct Quota {
  std::string whose = {};             ///< "user 1000", "group 100", "directory /ceph/project"
  std::uint64_t used = 0, limit = 0;  ///< bytes; limit 0: none
  std::uint64_t files_used = 0, files_limit = 0;
};
/// Returns the quotas that this process can read: of its user and group if the kernel keeps them
/// (ext4, xfs, ...), of the directories above on Ceph.
std::vector<Quota> quotas_of(const std::string& path);

}  // namespace pario::file
