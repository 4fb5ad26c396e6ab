// Walks a tree block by block. The innermost blocks at one stride are a strip, kept outside the stack, so that most steps are additions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "pattern/node.hpp"

namespace pario::pattern::detail {

/// `count` steps, `stride` apart.
struct Steps {
  std::int64_t stride = 0;
  std::uint64_t count = 0;
};

class Walk {
 public:
  /// Data bytes [begin, end) of `tree`, which begins at `origin`; stands at `begin`. A null tree has none.
  Walk(Tree tree, std::int64_t origin, std::uint64_t begin, std::uint64_t end);

  bool done() const { return left_ == 0; }
  std::int64_t at() const { return at_; }       ///< where the rest of the current block begins
  std::uint64_t left() const { return left_; }  ///< and how long it is
  std::uint64_t position() const { return strip_end_ - left_ - more_ * length_; }
  bool ordered() const { return !tree_ || tree_->whole.ordered; }

  /// Whole blocks at one stride from here on, the current one included; 1 in the middle of a block.
  std::uint64_t blocks() const { return left_ == length_ ? more_ + 1 : 1; }
  /// How the next bytes, at most `most` times `unit` (which is at most left()), can be taken in equal steps.
  Steps steps(std::uint64_t unit, std::uint64_t most) const {
    if (unit == length_ && left_ == length_) return {stride_, std::min(most, more_ + 1)};
    if (left_ - unit < unit) return {static_cast<std::int64_t>(unit), 1};
    if (unit * most <= left_) return {static_cast<std::int64_t>(unit), most};
    return {static_cast<std::int64_t>(unit), left_ / unit};
  }
  /// Goes past what steps() offered.
  void take(std::uint64_t unit, std::uint64_t count) {
    if (unit == length_ && left_ == length_) return take_blocks(count);
    skip(unit * count);
  }
  /// At most left() bytes.
  void skip(std::uint64_t bytes) {
    at_ += static_cast<std::int64_t>(bytes);
    left_ -= bytes;
    if (left_ == 0) next_block();
  }

  /// Between begin and end of the walk; what lies outside is cut.
  void seek(std::uint64_t position);
  /// An ordered tree: to the first byte at or after `offset`.
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
  /// The next block of an innermost list, without descending; false: it has ended, or there is none.
  bool next_listed();
  void descend(const Node* node, std::int64_t origin, std::uint64_t position);
  /// Stands at data byte `inside` of a leaf; `before` data bytes of the tree come before the leaf.
  void begin_strip(const Node* leaf, std::int64_t origin, std::uint64_t inside);
  void begin_block(std::int64_t origin, std::uint64_t length, std::uint64_t inside);
  void cut();

  std::int64_t at_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t length_ = 0;
  std::int64_t stride_ = 0;
  std::uint64_t more_ = 0;       ///< blocks of the strip after this one
  std::uint64_t strip_end_ = 0;  ///< position after the strip
  bool was_cut_ = false;         ///< the strip goes on with part of a block
  std::vector<Level> levels_;
  Tree tree_;
  std::int64_t origin_ = 0;
  std::uint64_t begin_ = 0, end_ = 0;
};

}  // namespace pario::pattern::detail
