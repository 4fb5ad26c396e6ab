// BeeGFS's ioctls that concern stripes: numbers and arguments of its public header, beegfs_ioctl_functions.h. Inside room storage. No heap,
// raw system calls. There was no BeeGFS to try them on.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

#include "layout/layout.hpp"

namespace pario::storage::beegfs {

struct Stripes {
  std::uint32_t pattern, chunk;
  std::uint16_t targets;
};
struct NewFile {
  const char* name;  ///< in the directory that is asked
  std::int32_t mode;
  std::uint32_t targets;  ///< 0: as the directory says; ~0: all
  std::uint32_t chunk;    ///< 0: as the directory says; 2^n, 64 KiB or more
};
inline constexpr unsigned long kGetStripes = _IOR('f', 25, Stripes), kMakeFile = _IOW('f', 27, NewFile);

/// What is asked for, with chunks rounded up to what there may be. `mode` is less the umask.
NewFile new_file(const char* name, unsigned mode, const layout::Striping& wanted);

/// 0, or -errno; EEXIST: it is there already, and nothing was changed.
long make(int directory, const NewFile& file);
/// No unit: it is not told.
layout::Striping striping_of(int descriptor);

}  // namespace pario::storage::beegfs
