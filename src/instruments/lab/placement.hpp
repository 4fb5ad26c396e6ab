// The places of the bytes of one file of a lab. Pure.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "core/layout/layout.hpp"

namespace pario::lab {

/// An object: bytes of a file on one target. Lustre: one per stripe of each part; Ceph: consecutive
/// objects of equal size.
struct ObjectName {
  std::uint32_t part = 0;
  std::uint64_t number = 0;
  auto operator<=>(const ObjectName&) const = default;
};

/// Bytes of a file that are contiguous in an object.
struct ObjectPart {
  ObjectName object;
  std::uint32_t target;
  std::uint64_t inside;  ///< offset in the object
  base::Extent range;    ///< extent in the file
  bool operator==(const ObjectPart&) const = default;
};

/// The parallel file system whose interface for stripes a lab has.
enum class Personality : std::uint8_t { lustre, ceph };

class Placement {
 public:
  /// Places a new file as an attribute requests, and decides the rest. `start` is called once with
  /// the number of stripes and returns the first target of a file that may begin on any. Empty if a
  /// server would reject the attribute.
  static std::optional<Placement> decide(Personality personality,
                                         std::span<const std::byte> attribute,
                                         std::uint32_t targets, std::uint64_t id,
                                         const std::function<std::uint32_t(std::uint32_t)>& start);
  /// Reads the output of record(); none for other bytes.
  static std::optional<Placement> read(std::span<const std::byte> record);
  std::vector<std::byte> record() const;

  /// The attribute that the file system reports for the file.
  const std::vector<std::byte>& attribute() const { return attribute_; }
  std::uint64_t unit() const { return file_.parts.back().striping.unit; }
  /// Returns pieces in the order of the file; an extent beyond the largest possible file is cut
  /// off.
  std::vector<ObjectPart> pieces(base::Extent extent) const;
  /// The first element of pieces().
  ObjectPart piece_at(std::uint64_t offset) const;

  struct Object {
    ObjectName name;
    std::uint32_t target;
    std::uint64_t size;  ///< bytes up to the end of the file
  };
  /// All objects that a file of `size` bytes may have.
  std::vector<Object> objects(std::uint64_t size) const;
  /// Returns all objects; `size` of each counts only the first `cut` bytes of the file.
  std::vector<Object> objects(std::uint64_t size, std::uint64_t cut) const;
  /// "0123456789abcdef.0.3"
  std::string file_name(const ObjectName& name) const;
  bool ceph() const { return file_.object_size != 0; }

 private:
  static std::optional<Placement> with(std::vector<std::byte> attribute, std::uint64_t id,
                                       std::uint32_t start, std::uint32_t targets);
  ObjectPart piece_in(std::uint32_t part, std::uint64_t offset) const;

  std::uint64_t id_ = 0;
  // of the lab; the placement of Ceph's objects depends on them
  std::uint32_t start_ = 0, targets_ = 1;
  std::vector<std::byte> attribute_;
  layout::StripedFile file_;
};

/// Returns the complete attribute ceph.file.layout.
std::vector<std::byte> ceph_attribute(const layout::Striping& striping, std::uint64_t object_size);
/// Returns the stripes of files if none were set.
std::vector<std::byte> default_attribute(Personality personality);
/// True if a server would accept an attribute.
bool is_valid_attribute(Personality personality, std::span<const std::byte> attribute,
                        std::uint32_t targets);

}  // namespace pario::lab
