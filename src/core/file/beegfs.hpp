// BeeGFS's ioctls for stripes, with the numbers and arguments of its public header
// beegfs_ioctl_functions.h. No heap, raw system calls. Never tested on a real BeeGFS.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

#include "core/layout/layout.hpp"

namespace pario::file::beegfs {

struct Stripes {
  std::uint32_t pattern, chunk;
  std::uint16_t targets;
};
struct NewFile {
  const char* name;  ///< in the directory that the ioctl is called on
  std::int32_t mode;
  std::uint32_t targets;  ///< 0: the directory's default; ~0: all
  std::uint32_t chunk;    ///< 0: the directory's default; 2^n, 64 KiB or more
};
inline constexpr unsigned long kGetStripes = _IOR('f', 25, Stripes),
                               kMakeFile = _IOW('f', 27, NewFile);

/// The argument for a striping, with chunks rounded up to allowed sizes. `mode` is less the umask.
NewFile new_file(const char* name, unsigned mode, const layout::Striping& wanted);

/// Creates the file. 0, or -errno; -EEXIST: the file exists, and nothing was changed.
long make(int directory, const NewFile& file);
/// Reads the striping of a file; its unit is 0 if unknown.
layout::Striping striping_of(int descriptor);

}  // namespace pario::file::beegfs
