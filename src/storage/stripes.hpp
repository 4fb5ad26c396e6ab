// How files are striped, in full, for tools: asked, set, read back. Open to other rooms. storage::open() sets count, unit and first target
// of the files that it creates by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "hints/hints.hpp"
#include "layout/layout.hpp"

namespace pario::storage {

struct Stripes {
  layout::Kind kind = layout::Kind::unknown;  ///< a FUSE file system that has Lustre's or Ceph's attributes counts as that
  bool directory = false;                     ///< then `striped` is what new files in it get
  std::uint64_t block = 0;                    ///< st_blksize
  std::string from = {};                      ///< the directory above that a directory has its stripes from; empty: they are its own
  layout::StripedFile striped = {};           ///< no parts: the file system does not tell, or has none
};
/// Asks the file system. ENOENT and the like are the only Errors.
base::Result<Stripes> stripes_of(const std::string& path);

struct StripesRequest {
  std::vector<layout::StripedPart> parts = {};  ///< one, or on Lustre several that follow each other from 0 to the end
  std::uint64_t object_size = 0;                ///< of Ceph; 0: as it is
  unsigned mode = 0666;                         ///< of a new file, less the umask
};
/// Stripes a new file, which is created, or one that has no bytes, or what new files of a directory get; returns what became of it, read
/// back. File systems may round, and keep what a file has already: the caller compares. EEXIST: the file has bytes. ENOTSUP: it cannot be
/// set there; EINVAL: not this. On an Error a file that was not there before is not there.
base::Result<Stripes> set_stripes(const std::string& path, const StripesRequest& request);
/// A directory has the stripes of the one above again.
base::Status inherit_stripes(const std::string& directory);

/// How many targets the file system of a directory has; 0: it does not tell.
std::uint32_t target_count(const std::string& directory);

/// What hints ask for, of a new file of that name that so many processes open together.
layout::Striping wanted_striping(const std::string& path, const hints::StripingHints& hints, std::uint32_t writers);

/// A limit on what somebody, or a directory, may store there.
struct Quota {
  std::string whose = {};             ///< "user 1000", "group 100", "directory /ceph/project"
  std::uint64_t used = 0, limit = 0;  ///< bytes; limit 0: none
  std::uint64_t files_used = 0, files_limit = 0;
};
/// Those that can be had from here: of the process's user and group where the kernel keeps them (ext4, xfs, ...), of the directories above
/// on Ceph.
std::vector<Quota> quotas_of(const std::string& path);

}  // namespace pario::storage
