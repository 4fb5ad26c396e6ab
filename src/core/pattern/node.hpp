// The tree of a TypeMap. The first byte of data of every node, in type map order, has displacement
// 0: the owner of a node knows its origin, so that equal shapes are equal nodes anywhere.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/pattern/pattern.hpp"

namespace pario::pattern::detail {

/// Returns `count` strides; values too large for any file wrap, which is defined.
inline std::int64_t strides(std::uint64_t count, std::int64_t stride) {
  return static_cast<std::int64_t>(count * static_cast<std::uint64_t>(stride));
}
inline std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// The outline of a range of data. pieces == 0: no data, the other members are undefined.
struct Measure {
  std::uint64_t pieces = 0;
  std::int64_t first = 0, last = 0;  ///< begin of the first piece, end of the last one
  std::int64_t last_begin = 0;       ///< begin of the last block
  std::int64_t low = 0, high = 0;    ///< the lowest byte, one past the highest
  /// Displacements from `first`, lengths and strides, or-ed: their low zero bits are common to all.
  std::uint64_t bits = 0;
  bool monotonic = true;  ///< blocks begin in ascending order
  bool ordered = true;    ///< and each begins at or after the end of the previous one
};
Measure block_measure(std::int64_t first, std::uint64_t length);
Measure shift_measure(Measure measure, std::int64_t by);
Measure join_measures(const Measure& a, const Measure& b);
Measure repeat_measure(const Measure& one, std::uint64_t count, std::int64_t stride);
/// Returns the largest power of two, at most kMaxGranule, that divides all values or-ed into
/// `bits`.
std::uint64_t granule_of(std::uint64_t bits);

struct Node;
using Tree = std::shared_ptr<const Node>;  ///< null: no data

struct Node {
  enum class Kind : std::uint8_t {
    block,     ///< `size` bytes
    repeat,    ///< `count` of `child`, `stride` apart
    equal,     ///< `child` at each of `displacements`
    blocks,    ///< blocks at `displacements`, as long as `positions` differ
    sequence,  ///< `children` at `displacements`
  };
  Kind kind = Kind::block;
  std::uint32_t depth = 0;  ///< depth in nodes that are not leaves of a walk
  std::uint64_t size = 0;
  std::uint64_t count = 1;
  std::int64_t stride = 0;
  Tree child;
  std::vector<std::int64_t> displacements;
  std::vector<std::uint64_t>
      positions;  ///< for blocks and sequence: data bytes before each part, and the sum
  std::vector<Tree> children;
  Measure whole;

  bool is_block() const { return kind == Kind::block; }
  /// True for blocks at one stride, which a walk consumes at once.
  bool is_strip() const {
    return kind == Kind::block || (kind == Kind::repeat && child->is_block());
  }
  bool lists_blocks() const {
    return kind == Kind::blocks || (kind == Kind::equal && child->is_block());
  }
  std::int64_t displacement(std::uint64_t index) const {
    return kind == Kind::repeat ? strides(index, stride) : displacements[index];
  }
  /// Returns the child of a part; null for a part of `blocks`.
  const Node* part(std::uint64_t index) const {
    return kind == Kind::sequence ? children[index].get() : child.get();
  }
  std::uint64_t part_size(std::uint64_t index) const {
    if (kind == Kind::repeat || kind == Kind::equal) return child->size;
    return positions[index + 1] - positions[index];
  }
  std::uint64_t part_position(std::uint64_t index) const;
  /// Returns the part with data byte `position`.
  std::uint64_t part_at(std::uint64_t position) const;
};

Tree make_block(std::uint64_t size);
Tree make_repeat(const Tree& child, std::uint64_t count, std::int64_t stride);
bool same(const Tree& a, const Tree& b);

/// Builds a sequence of parts and joins adjacent blocks.
class Builder {
 public:
  void reserve(std::size_t parts);
  void add(std::int64_t displacement, const Tree& tree);
  void add_block(std::int64_t displacement, std::uint64_t size);
  /// Returns the tree and its origin.
  Tree finish(std::int64_t& first);

 private:
  Tree finish_list(bool equal);
  bool all_equal() const;
  bool evenly_spaced() const;
  Tree tree_of(std::size_t index) const;

  std::vector<std::int64_t> displacements_;
  std::vector<std::uint64_t> sizes_;
  std::vector<Tree> trees_;  ///< empty while all parts are blocks; null for a block
};

/// Returns the outline of data bytes [begin, end) of a node with origin `origin`.
Measure measure(const Node& node, std::int64_t origin, std::uint64_t begin, std::uint64_t end);
/// Returns the number of data bytes below displacement `offset`.
std::uint64_t bytes_below(const Node& node, std::int64_t offset);
/// Returns the displacement of data byte `position`.
std::int64_t offset_at(const Node& node, std::uint64_t position);

/// Access of the module to the tree of a TypeMap.
struct Inside {
  static const Tree& tree(const TypeMap& layout) { return layout.node_; }
  static std::int64_t first(const TypeMap& layout) { return layout.first_; }
  static TypeMap make(Tree tree, std::int64_t first, std::int64_t lower, std::int64_t extent);
};

/// The copies of a layout that `bytes` data bytes from `position` on touch, as one tree.
struct Tiling {
  Tree tree;                ///< null: no data
  std::int64_t origin = 0;  ///< its origin, relative to the origin of copy 0
  std::uint64_t begin = 0;  ///< the data byte of the tree at `position`
};
Tiling tile(const TypeMap& layout, std::uint64_t position, std::uint64_t bytes);

}  // namespace pario::pattern::detail
