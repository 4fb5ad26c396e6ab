// The extended attributes of a file's stripes, by descriptor: read, and set on an empty file. No
// heap, raw system calls.
#pragma once

#include <span>

#include "core/layout/layout.hpp"

namespace pario::file {

/// O_LOV_DELAY_CREATE of Lustre, which is O_NOCTTY and FASYNC: a file without objects, whose
/// stripes may still be set.
constexpr int kDelayCreate = 0x2100;

inline bool is_ceph(layout::Kind kind) {
  return kind == layout::Kind::ceph || kind == layout::Kind::ceph_fuse;
}
inline bool can_set_stripes(layout::Kind kind) {
  return kind == layout::Kind::lustre || kind == layout::Kind::beegfs || is_ceph(kind);
}
/// True for file systems that may report stripes: Lustre and Ceph also exist as FUSE file systems.
inline bool may_have_stripes(layout::Kind kind) {
  return can_set_stripes(kind) || kind == layout::Kind::fuse;
}

layout::Kind kind_of(int descriptor);
/// The number of Lustre's targets, from an open directory; 0 if unknown.
std::uint32_t target_count(int directory);

/// A file's striping, and the file system that reports it: `kind` is fuse only if none does. The
/// unit is 0 if unknown.
struct KnownStriping {
  layout::Kind kind = layout::Kind::unknown;
  layout::Striping striping = {};
};
KnownStriping striping_of(int descriptor);
/// 0, or the -errno of setting `attribute`; -ENOTSUP: the file system has none that can be set.
struct SetOutcome {
  long error = 0;
  const char* attribute = "";
};
/// Sets the striping of a file or of a directory's new files: `parts` are at most 8, and only
/// Lustre has more than one.
SetOutcome set_striping(int descriptor, layout::Kind kind, bool directory,
                        std::span<const layout::StripedPart> parts);

}  // namespace pario::file
