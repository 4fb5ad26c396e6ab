// Where the bytes of one file of a lab are. Pure.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "layout/layout.hpp"

namespace pario::lab {

/// The bytes of a file on a target. Lustre: one per stripe of each part; Ceph: one after the other, each of so many bytes.
struct ObjectName {
  std::uint32_t part = 0;
  std::uint64_t number = 0;
  auto operator<=>(const ObjectName&) const = default;
};

/// Bytes of a file that lie side by side in an object.
struct Piece {
  ObjectName object;
  std::uint32_t target;
  std::uint64_t inside;  ///< where in the object
  base::Extent range;    ///< of the file
  bool operator==(const Piece&) const = default;
};

/// What a lab is like to those who ask for stripes.
enum class Personality : std::uint8_t { lustre, ceph };

class Placement {
 public:
  /// A new file with what an attribute asks for; what it leaves open is decided. `start`: called once with the number of stripes, the
  /// first target of a file that may begin anywhere. Nothing: a server would not take the attribute.
  static std::optional<Placement> decide(Personality personality, std::span<const std::byte> attribute, std::uint32_t targets,
                                         std::uint64_t id, const std::function<std::uint32_t(std::uint32_t)>& start);
  /// What record() gave; nothing for what is no such thing.
  static std::optional<Placement> read(std::span<const std::byte> record);
  std::vector<std::byte> record() const;

  /// What the file system tells of the file.
  const std::vector<std::byte>& attribute() const { return attribute_; }
  std::uint64_t unit() const { return file_.parts.back().striping.unit; }
  /// In the order of the file; an extent that ends beyond what can be is cut off.
  std::vector<Piece> pieces(base::Extent extent) const;
  /// The first of pieces().
  Piece piece_at(std::uint64_t offset) const;

  struct Object {
    ObjectName name;
    std::uint32_t target;
    std::uint64_t size;  ///< bytes up to the end of the file
  };
  /// All that a file of so many bytes may have.
  std::vector<Object> objects(std::uint64_t size) const;
  /// The same for a file of that size, with what each has of the first `cut` bytes.
  std::vector<Object> objects(std::uint64_t size, std::uint64_t cut) const;
  /// "0123456789abcdef.0.3"
  std::string file_name(const ObjectName& name) const;
  bool ceph() const { return file_.object_size != 0; }

 private:
  static std::optional<Placement> with(std::vector<std::byte> attribute, std::uint64_t id, std::uint32_t start, std::uint32_t targets);
  Piece piece_in(std::uint32_t part, std::uint64_t offset) const;

  std::uint64_t id_ = 0;
  std::uint32_t start_ = 0, targets_ = 1;  // of the lab; they place objects of Ceph
  std::vector<std::byte> attribute_;
  layout::StripedFile file_;
};

/// ceph.file.layout in full.
std::vector<std::byte> ceph_attribute(const layout::Striping& striping, std::uint64_t object_size);
/// What files get where nobody has said anything.
std::vector<std::byte> usual_attribute(Personality personality);
/// Whether a server would take an attribute.
bool is_good(Personality personality, std::span<const std::byte> attribute, std::uint32_t targets);

}  // namespace pario::lab
