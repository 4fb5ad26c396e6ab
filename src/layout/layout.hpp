// Room layout: where the bytes of a file live. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/base.hpp"
#include "layout/policy.hpp"
#include "layout/striping.hpp"
#include "layout/subfiles.hpp"

namespace pario::layout {

/// What kind of file system, as far as it changes how files should be accessed. One row each in layout.def: name, magic numbers of statfs,
/// and the traits below.
enum class Kind : std::uint8_t { local, tmpfs, nfs, lustre, gpfs, ceph, ceph_fuse, beegfs, panfs, pvfs, fuse, unknown };

struct Traits {
  const char* name;
  bool byte_coherent;         ///< two nodes may write different bytes of one block at the same time
  bool locks_across_nodes;    ///< fcntl locks hold between nodes: sieved writes are safe
  bool cyclic_domains;        ///< aggregators own stripe targets (Lustre, Ceph) instead of contiguous parts
  std::uint64_t domain_unit;  ///< 0: the layout's own unit
};
const Traits& traits(Kind kind);
Kind kind_of_magic(std::uint64_t statfs_type);
/// The kind called `name` in layout.def; unknown for any other name.
Kind kind_of_name(std::string_view name);

/// RAID-0 striping; one target and any unit for files that are not striped.
struct StripeLayout {
  Kind kind = Kind::unknown;
  std::uint64_t unit = 4096;  ///< bytes per stripe, or the block of the file system: the unit of locking
  std::uint32_t targets = 1;  ///< stripe count
  std::uint32_t target_of(std::uint64_t offset) const { return static_cast<std::uint32_t>(offset / unit % targets); }
  bool operator==(const StripeLayout&) const = default;
};

}  // namespace pario::layout
