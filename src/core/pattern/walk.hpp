// A walk through a tree, block by block. The innermost blocks at one stride are a strip outside of
// the stack, so that most steps are additions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/pattern/node.hpp"

namespace pario::pattern::detail {

/// A number of equal steps.
struct Steps {
  std::int64_t stride = 0;
  std::uint64_t count = 0;
};

class Walk {
 public:
  /// Walks data bytes [begin, end) of `tree`, with origin `origin`, from `begin` on. A null tree
  /// has none.
  Walk(Tree tree, std::int64_t origin, std::uint64_t begin, std::uint64_t end);

  bool at_end() const { return left_ == 0; }
  std::int64_t at() const { return at_; }       ///< begin of the rest of the current block
  std::uint64_t left() const { return left_; }  ///< its length
  std::uint64_t position() const { return strip_end_ - left_ - more_ * length_; }
  bool is_ordered() const { return !tree_ || tree_->whole.ordered; }

  /// Returns the number of whole blocks at one stride from here on, with the current one; 1 in the
  /// middle of a block.
  std::uint64_t blocks() const { return left_ == length_ ? more_ + 1 : 1; }
  /// Returns equal steps for the next bytes, at most `most` times `unit` (which is at most left()).
  Steps steps(std::uint64_t unit, std::uint64_t most) const {
    if (unit == length_ && left_ == length_) return {stride_, std::min(most, more_ + 1)};
    if (left_ - unit < unit) return {static_cast<std::int64_t>(unit), 1};
    if (unit * most <= left_) return {static_cast<std::int64_t>(unit), most};
    return {static_cast<std::int64_t>(unit), left_ / unit};
  }
  /// Advances past the result of steps().
  void take(std::uint64_t unit, std::uint64_t count) {
    if (unit == length_ && left_ == length_) return take_blocks(count);
    skip(unit * count);
  }
  /// Advances by at most left() bytes.
  void skip(std::uint64_t bytes) {
    at_ += static_cast<std::int64_t>(bytes);
    left_ -= bytes;
    if (left_ == 0) next_block();
  }

  /// Takes whole blocks of an innermost list from here on, at most `most` bytes that end at or
  /// before `end`, and calls `use(begin, length)` for each. Returns their bytes; 0: there are none.
  template <class Use>
  std::uint64_t take_listed(std::uint64_t most, std::int64_t end, const Use& use) {
    if (levels_.empty() || left_ != length_ || !levels_.back().node->lists_blocks()) return 0;
    Level& level = levels_.back();
    const Node& node = *level.node;
    most = std::min(most, end_ - position());
    std::uint64_t taken = 0, index = level.index;
    for (; index < node.count; ++index) {
      const std::uint64_t length = node.part_size(index);
      const std::int64_t begin = plus(level.origin, node.displacements[index]);
      if (length > most - taken || begin > end - static_cast<std::int64_t>(length)) break;
      use(begin, length);
      taken += length;
    }
    if (taken == 0) return 0;
    level.index = index - 1;
    strip_end_ += taken - length_;
    next_strip();
    return taken;
  }

  /// Moves to a position; positions outside of the walk are clamped.
  void seek(std::uint64_t position);
  /// Moves to the first byte at or after `offset`, in an ordered tree.
  void seek_offset(std::int64_t offset);

 private:
  struct Level {
    const Node* node;
    std::int64_t origin;
    std::uint64_t index;
  };

  void take_blocks(std::uint64_t count) {
    if (count > more_) {
      more_ = 0;
      return next_strip();
    }
    at_ += static_cast<std::int64_t>(count) * stride_;
    more_ -= count;
  }
  void next_block() {
    if (more_ == 0) return next_strip();
    at_ += stride_ - static_cast<std::int64_t>(length_);
    left_ = length_;
    --more_;
  }
  void next_strip();
  /// Moves to the next block of an innermost list, without descending; false at its end, or without
  /// a list.
  bool next_listed();
  void descend(const Node* node, std::int64_t origin, std::uint64_t position);
  /// Enters a leaf at its data byte `inside`; `before` data bytes of the tree precede the leaf.
  void begin_strip(const Node* leaf, std::int64_t origin, std::uint64_t inside);
  void begin_block(std::int64_t origin, std::uint64_t length, std::uint64_t inside);
  void cut();

  std::int64_t at_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t length_ = 0;
  std::int64_t stride_ = 0;
  std::uint64_t more_ = 0;       ///< blocks of the strip after this one
  std::uint64_t strip_end_ = 0;  ///< position after the strip
  bool was_cut_ = false;         ///< the strip continues with part of a block
  std::vector<Level> levels_;
  Tree tree_;
  std::int64_t origin_ = 0;
  std::uint64_t begin_ = 0, end_ = 0;
};

}  // namespace pario::pattern::detail
