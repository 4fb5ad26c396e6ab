// The attributes by which a file system tells, and is told, how a file is striped: lustre.lov and ceph.file.layout. Pure; what concerns
// plain striping (Striping alone) uses no heap.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.hpp"

namespace pario::layout {

inline constexpr const char* kLustreAttribute = "lustre.lov";
inline constexpr const char* kCephAttribute = "ceph.file.layout";
inline constexpr const char* kCephDirectoryAttribute = "ceph.dir.layout";
inline constexpr std::uint32_t kAllTargets = 0xFFFF;
/// Stripes are multiples of this on Lustre and on Ceph.
inline constexpr std::uint64_t kStripeGranule = 64 << 10;
inline constexpr std::uint64_t kToTheEnd = ~std::uint64_t{0};

struct Striping {
  std::uint64_t unit = 0;     ///< bytes per stripe; 0: not said, or as the directory says
  std::uint32_t targets = 0;  ///< 0: not said, or as the directory says; kAllTargets: all there are
  std::int32_t start = -1;    ///< first target; -1: any, or not said
  bool operator==(const Striping&) const = default;
};

/// A range of a file and how it is striped. Most files have one, of all their bytes; composite files of Lustre have several.
struct StripedPart {
  base::Extent range = {0, kToTheEnd};
  Striping striping = {};
  std::string pool = {};
  bool overstriped = false;                 ///< a target may have several of the stripes
  bool on_metadata_server = false;          ///< and has no stripes
  bool waits = false;                       ///< of a composite file: gets its targets with its first byte
  std::uint32_t mirror = 0;                 ///< number of the copy of the file that it belongs to; 0: there is one only
  bool stale = false;                       ///< of a mirror that is out of date
  std::vector<std::uint32_t> targets = {};  ///< in the order of the stripes; empty: not told (reading), any (asking)
  bool operator==(const StripedPart&) const = default;
};

/// All that a raw attribute says.
struct StripedFile {
  std::vector<StripedPart> parts = {};
  std::uint64_t object_size = 0;  ///< of Ceph; 0: there is no such thing
  bool operator==(const StripedFile&) const = default;
};

/// The striping in a raw attribute of either kind; of a composite file of Lustre that of the last
/// striped range of its first mirror that is up to date, where most of a large file lies. A damaged
/// attribute says nothing. Uses no heap.
Striping read_striping(std::span<const std::byte> attribute);
/// All that a raw attribute says; no parts: it is damaged, or no such attribute.
StripedFile read_striped_file(std::span<const std::byte> attribute);
/// The part at which a file has grown to: of the parts that read_striping() chooses from the last
/// that has targets, else the last of all. Null: there are no parts.
const StripedPart* grown_part(const StripedFile& file);
/// Why a raw attribute says nothing (static text, no heap); null: it says something.
const char* problem_of(std::span<const std::byte> attribute);

/// lustre.lov for a new file or for a directory, version 1. The unit is rounded up to the granule.
std::array<std::byte, 32> lustre_attribute(const Striping& wanted);
/// Also with pools (version 3; 15 characters at most), lists of targets (which replace count and start), overstriped, and, when there are
/// several parts, composite.
std::vector<std::byte> lustre_attribute(std::span<const StripedPart> parts);
/// The same without heap, into exactly as many bytes as it takes.
std::size_t lustre_attribute_size(std::span<const StripedPart> parts);
void put_lustre_attribute(std::span<std::byte> out, std::span<const StripedPart> parts);

/// What else can be asked of Ceph; 0 and empty: as it is.
struct CephObjects {
  std::uint64_t size = 0;
  std::string_view pool = {};
};
/// ceph.file.layout for a new file, or ceph.dir.layout: what `now`, the raw attribute, says, changed as wanted. The unit is rounded up to
/// the granule and the size of objects to a multiple of it. kAllTargets is not known here: left as it is.
void add_ceph_attribute(base::TextBuffer& out, const Striping& wanted, std::span<const std::byte> now, const CephObjects& objects = {});

}  // namespace pario::layout
