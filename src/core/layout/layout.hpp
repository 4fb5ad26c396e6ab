// Module layout: file systems, the layouts of files on their targets, and the policy for the
// stripes of new files. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/base.hpp"
#include "core/layout/policy.hpp"
#include "core/layout/striping.hpp"
#include "core/layout/subfiles.hpp"

namespace pario::layout {

/// A kind of file system, a row of layout.def.
enum class Kind : std::uint8_t {
#define PARIO_FILE_SYSTEM(kind, ...) kind,
#include "core/layout/layout.def"
#undef PARIO_FILE_SYSTEM
};
inline constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::unknown) + 1;

struct Traits {
  const char* name;
  bool byte_coherent;         ///< two nodes may write different bytes of one block at the same time
  bool locks_across_nodes;    ///< fcntl locks hold between nodes: sieved writes are safe
  bool cyclic_domains;        ///< aggregators own stripe targets instead of contiguous parts
  std::uint64_t domain_unit;  ///< 0: the layout's own unit
  bool network;
  const char* mounts;            ///< names in the table of mounts, separated by blanks
  const char* layout_attribute;  ///< extended attribute with the layout of a file; null: none
};
const Traits& traits(Kind kind);
Kind kind_of_magic(std::uint64_t statfs_type);
/// The kind called `name` in layout.def; unknown for any other name.
Kind kind_of_name(std::string_view name);
/// The traits of a file system by its name in the table of mounts; null: no row has the name.
const Traits* find_mount_traits(std::string_view name);
/// True if the file system with this name in the table of mounts is remote. FUSE file systems
/// without a row count as remote.
bool is_network(std::string_view name);

/// The RAID-0 striping of a file; files without stripes have one target and any unit.
struct StripeLayout {
  Kind kind = Kind::unknown;
  std::uint64_t unit = 4096;  ///< bytes per stripe, or the block: the unit of locking
  std::uint32_t targets = 1;  ///< stripe count
  /// Calls of at least so many bytes pass the page cache by; 0: none do.
  std::uint64_t direct_write = 0, direct_read = 0;
  std::uint32_t target_of(std::uint64_t offset) const {
    return static_cast<std::uint32_t>(offset / unit % targets);
  }
  bool operator==(const StripeLayout&) const = default;
};

}  // namespace pario::layout
