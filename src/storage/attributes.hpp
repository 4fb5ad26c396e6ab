// The attributes that tell a file's stripes, by descriptor: read, and set on a file without bytes. No heap, raw system calls.
#pragma once

#include <span>

#include "layout/layout.hpp"

namespace pario::storage {

inline bool is_ceph(layout::Kind kind) { return kind == layout::Kind::ceph || kind == layout::Kind::ceph_fuse; }
inline bool has_stripes(layout::Kind kind) { return kind == layout::Kind::lustre || kind == layout::Kind::beegfs || is_ceph(kind); }
/// Both file systems also come through FUSE.
inline bool may_have_stripes(layout::Kind kind) { return has_stripes(kind) || kind == layout::Kind::fuse; }

layout::Kind kind_of(int descriptor);
/// Of Lustre, of an open directory; 0: it does not tell.
std::uint32_t target_count(int directory);

/// What is told, and by whom: `kind` is fuse only where nothing is. No unit: it does not tell.
struct Told {
  layout::Kind kind = layout::Kind::unknown;
  layout::Striping striping = {};
};
Told striping_of(int descriptor);
/// 0, or the -errno of setting `attribute`; -ENOTSUP: there is none that can be set.
struct SetOutcome {
  long error = 0;
  const char* attribute = "";
};
SetOutcome set_striping(int descriptor, layout::Kind kind, bool directory, const layout::Striping& wanted);
/// The same in several parts, which only Lustre has.
SetOutcome set_striping(int descriptor, layout::Kind kind, const layout::GrowingStripes& wanted);

}  // namespace pario::storage
