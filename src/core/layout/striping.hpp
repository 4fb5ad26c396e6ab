// The attributes with which file systems report and set the layout of a file: lustre.lov and
// ceph.file.layout. Pure functions; those of Striping alone use no heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/base.hpp"

namespace pario::layout {

inline constexpr const char* kLustreAttribute = "lustre.lov";
inline constexpr const char* kCephAttribute = "ceph.file.layout";
inline constexpr const char* kCephDirectoryAttribute = "ceph.dir.layout";
inline constexpr std::uint32_t kAllTargets = 0xFFFF;
/// Stripes are multiples of this on Lustre and on Ceph.
inline constexpr std::uint64_t kStripeGranule = 64 << 10;
inline constexpr std::uint64_t kToTheEnd = ~std::uint64_t{0};

struct Striping {
  std::uint64_t unit = 0;     ///< bytes per stripe; 0: unset, or the default of the directory
  std::uint32_t targets = 0;  ///< 0: unset, or the default of the directory; kAllTargets: all
  std::int32_t start = -1;    ///< first target; -1: any, or unset
  bool operator==(const Striping&) const = default;
};

/// The striping of a range of a file. Most files have one range, composite files of Lustre have
/// several.
struct StripedPart {
  base::Extent range = {0, kToTheEnd};
  Striping striping = {};
  std::string pool = {};
  bool overstriped = false;         ///< a target may have several of the stripes
  bool on_metadata_server = false;  ///< on the metadata server, without stripes
  bool waits = false;  ///< in a composite file: has no targets before its first byte is written
  std::uint32_t mirror =
      0;               ///< number of the copy of the file that it belongs to; 0: there is one only
  bool stale = false;  ///< in a mirror that is out of date
  std::vector<std::uint32_t> targets =
      {};  ///< in the order of the stripes; empty: unknown (reading), any (setting)
  bool operator==(const StripedPart&) const = default;
};

/// The contents of a raw attribute.
struct StripedFile {
  std::vector<StripedPart> parts = {};
  std::uint64_t object_size = 0;  ///< of Ceph; 0: none
  bool operator==(const StripedFile&) const = default;
};

/// Reads the striping from a raw attribute of either kind; of a composite file of Lustre that of
/// the last striped range of its first up-to-date mirror, which has most bytes of a large file.
/// Empty for a damaged attribute. No heap.
Striping read_striping(std::span<const std::byte> attribute);
/// Reads all of a raw attribute; no parts: it is damaged, or another attribute.
StripedFile read_striped_file(std::span<const std::byte> attribute);
/// Returns the part that a growing file has reached: the last part with targets of those that
/// read_striping() considers, else the last part. Null: there are no parts.
const StripedPart* grown_part(const StripedFile& file);
/// Returns why a raw attribute is invalid (static text, no heap); null if it is valid.
const char* problem_of(std::span<const std::byte> attribute);

/// Returns the attribute lustre.lov for a new file or a directory: version 1, or version 3 with a
/// pool (at most 15 characters) or a list of targets (which replaces count and start), and, for
/// several parts, a composite layout. Rounds units up to the granule.
std::vector<std::byte> lustre_attribute(std::span<const StripedPart> parts);
/// Writes the attribute without heap; `out` has exactly its size.
std::size_t lustre_attribute_size(std::span<const StripedPart> parts);
void put_lustre_attribute(std::span<std::byte> out, std::span<const StripedPart> parts);

/// The other properties of a layout on Ceph; 0 and empty: unchanged.
struct CephObjects {
  std::uint64_t size = 0;
  std::string_view pool = {};
};
/// Adds ceph.file.layout for a new file, or ceph.dir.layout: the raw attribute `now`, with the
/// wanted changes. Rounds the unit up to the granule and the object size to a multiple of the unit.
/// kAllTargets leaves the count unchanged.
void add_ceph_attribute(base::TextBuffer& out, const Striping& wanted,
                        std::span<const std::byte> now, const CephObjects& objects = {});

}  // namespace pario::layout
