#include "core/pattern/walk.hpp"

namespace pario::pattern::detail {

Walk::Walk(Tree tree, std::int64_t origin, std::uint64_t begin, std::uint64_t end)
    : tree_(std::move(tree)), origin_(origin), begin_(begin), end_(tree_ ? end : begin) {
  if (tree_) levels_.reserve(tree_->depth);
  seek(begin);
}

void Walk::begin_block(std::int64_t origin, std::uint64_t length, std::uint64_t inside) {
  at_ = plus(origin, static_cast<std::int64_t>(inside));
  left_ = length - inside;
  length_ = length;
  stride_ = static_cast<std::int64_t>(length);
  more_ = 0;
}

void Walk::begin_strip(const Node* leaf, std::int64_t origin, std::uint64_t inside) {
  if (leaf->is_block()) return begin_block(origin, leaf->size, inside);
  const std::uint64_t length = leaf->child->size, index = inside == 0 ? 0 : inside / length;
  begin_block(plus(origin, strides(index, leaf->stride)), length, inside - index * length);
  stride_ = leaf->stride;
  more_ = leaf->count - 1 - index;
}

// The walk may end in the middle of a strip: whole blocks first, then the rest of one.
void Walk::cut() {
  const std::uint64_t position = strip_end_, strip = left_ + more_ * length_,
                      rest = end_ - position;
  strip_end_ = position + strip;
  was_cut_ = strip > rest;
  if (!was_cut_) return;
  if (rest < left_) {
    left_ = rest;
    more_ = 0;
  } else {
    more_ = (rest - left_) / length_;
  }
  strip_end_ = position + left_ + more_ * length_;
}

void Walk::descend(const Node* node, std::int64_t origin, std::uint64_t inside) {
  while (node != nullptr && !node->is_strip()) {
    const std::uint64_t index = inside == 0 ? 0 : node->part_at(inside);
    levels_.push_back({node, origin, index});
    origin = plus(origin, node->displacement(index));
    inside -= node->part_position(index);
    node = node->part(index);
  }
  if (node != nullptr) {
    begin_strip(node, origin, inside);
  } else {
    begin_block(origin, levels_.back().node->part_size(levels_.back().index), inside);
  }
  cut();
}

void Walk::seek(std::uint64_t position) {
  strip_end_ = std::clamp(position, begin_, end_);
  levels_.clear();
  left_ = more_ = 0;
  if (strip_end_ < end_) descend(tree_.get(), origin_, strip_end_);
}

void Walk::seek_offset(std::int64_t offset) {
  seek(tree_ ? bytes_below(*tree_, offset - origin_) : 0);
}

bool Walk::next_listed() {
  if (levels_.empty() || !levels_.back().node->lists_blocks()) return false;
  Level& level = levels_.back();
  if (++level.index == level.node->count) {
    levels_.pop_back();
    return false;
  }
  begin_block(plus(level.origin, level.node->displacements[level.index]),
              level.node->part_size(level.index), 0);
  if (left_ > end_ - strip_end_) {
    cut();
  } else {
    strip_end_ += left_;
  }
  return true;
}

void Walk::next_strip() {
  left_ = 0;
  if (strip_end_ >= end_) return;
  if (was_cut_) return seek(strip_end_);
  if (next_listed()) return;
  while (!levels_.empty()) {
    Level& level = levels_.back();
    const Node& node = *level.node;
    if (++level.index < node.count)
      return descend(node.part(level.index), plus(level.origin, node.displacement(level.index)), 0);
    levels_.pop_back();
  }
}

}  // namespace pario::pattern::detail
