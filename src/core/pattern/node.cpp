#include "core/pattern/node.hpp"

#include <algorithm>
#include <array>

namespace pario::pattern::detail {
namespace {

std::uint32_t depth_of(const Node& node) {
  if (node.is_strip()) return 0;
  std::uint32_t below = node.child ? node.child->depth : 0;
  for (const Tree& child : node.children) below = std::max(below, child->depth);
  return below + 1;
}

}  // namespace

std::uint64_t Node::part_position(std::uint64_t index) const {
  if (kind == Kind::repeat || kind == Kind::equal) return index * child->size;
  return positions[index];
}

std::uint64_t Node::part_at(std::uint64_t position) const {
  if (kind == Kind::repeat || kind == Kind::equal) return position / child->size;
  return static_cast<std::uint64_t>(
             std::upper_bound(positions.begin(), positions.end() - 1, position) -
             positions.begin()) -
         1;
}

namespace {

Tree make_new_block(std::uint64_t size) {
  auto node = std::make_shared<Node>();
  node->size = size;
  node->whole = block_measure(0, size);
  return node;
}

}  // namespace

/// Blocks of the size of an elementary type are made once: every access has several.
Tree make_block(std::uint64_t size) {
  constexpr std::uint64_t kLargestKept = 16;
  struct Kept {
    std::array<Tree, kLargestKept + 1> owners;
    std::array<Tree, kLargestKept + 1> blocks;  // without an owner: copies count no references
  };
  // Never destroyed: other threads may outlive main().
  static const Kept* kept = [] {
    auto* made = new Kept;
    for (std::uint64_t i = 1; i <= kLargestKept; ++i) {
      made->owners[i] = make_new_block(i);
      made->blocks[i] = Tree(Tree(), made->owners[i].get());
    }
    return made;
  }();
  return size <= kLargestKept ? kept->blocks[size] : make_new_block(size);
}

Tree make_repeat(const Tree& child, std::uint64_t count, std::int64_t stride) {
  if (!child || count == 0) return nullptr;
  if (count == 1) return child;
  if (child->is_block() && stride == static_cast<std::int64_t>(child->size))
    return make_block(child->size * count);
  if (child->kind == Node::Kind::repeat && stride == strides(child->count, child->stride))
    return make_repeat(child->child, child->count * count, child->stride);
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::repeat;
  node->size = child->size * count;
  node->count = count;
  node->stride = stride;
  node->child = child;
  node->whole = repeat_measure(child->whole, count, stride);
  node->depth = depth_of(*node);
  return node;
}

bool same(const Tree& a, const Tree& b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind || a->size != b->size || a->count != b->count ||
      a->stride != b->stride)
    return false;
  if (!same(a->child, b->child) || a->displacements != b->displacements ||
      a->positions != b->positions)
    return false;
  return std::equal(a->children.begin(), a->children.end(), b->children.begin(), b->children.end(),
                    same);
}

void Builder::reserve(std::size_t parts) {
  displacements_.reserve(parts);
  sizes_.reserve(parts);
}

void Builder::add(std::int64_t displacement, const Tree& tree) {
  if (!tree) return;
  if (tree->is_block()) return add_block(displacement, tree->size);
  displacements_.push_back(displacement);
  sizes_.push_back(tree->size);
  trees_.resize(displacements_.size() - 1);
  trees_.push_back(tree);
}

void Builder::add_block(std::int64_t displacement, std::uint64_t size) {
  if (size == 0) return;
  const bool after_block = !displacements_.empty() && trees_.size() < displacements_.size();
  if (after_block &&
      displacement == plus(displacements_.back(), static_cast<std::int64_t>(sizes_.back()))) {
    sizes_.back() += size;
    return;
  }
  if (!trees_.empty()) trees_.resize(displacements_.size());
  displacements_.push_back(displacement);
  sizes_.push_back(size);
}

Tree Builder::tree_of(std::size_t index) const {
  const bool block = index >= trees_.size() || !trees_[index];
  return block ? make_block(sizes_[index]) : trees_[index];
}

bool Builder::all_equal() const {
  if (!std::all_of(sizes_.begin(), sizes_.end(),
                   [&](std::uint64_t size) { return size == sizes_.front(); }))
    return false;
  if (trees_.empty()) return true;
  return trees_.size() == sizes_.size() &&
         std::all_of(trees_.begin(), trees_.end(),
                     [&](const Tree& tree) { return same(tree, trees_.front()); });
}

bool Builder::evenly_spaced() const {
  const std::int64_t stride = displacements_[1] - displacements_[0];
  for (std::size_t i = 2; i < displacements_.size(); ++i)
    if (displacements_[i] - displacements_[i - 1] != stride) return false;
  return true;
}

Tree Builder::finish_list(bool equal) {
  auto node = std::make_shared<Node>();
  node->kind = equal            ? Node::Kind::equal
               : trees_.empty() ? Node::Kind::blocks
                                : Node::Kind::sequence;
  if (equal) node->child = tree_of(0);
  if (node->kind == Node::Kind::sequence)
    for (std::size_t i = 0; i < sizes_.size(); ++i) node->children.push_back(tree_of(i));
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const Measure part =
        node->kind == Node::Kind::blocks ? block_measure(0, sizes_[i]) : node->part(i)->whole;
    node->whole = join_measures(node->whole, shift_measure(part, displacements_[i]));
    node->size += sizes_[i];
    sizes_[i] = node->size - sizes_[i];
  }
  if (!equal) {
    sizes_.push_back(node->size);
    sizes_.shrink_to_fit();
    node->positions = std::move(sizes_);
  }
  node->count = displacements_.size();
  displacements_.shrink_to_fit();
  node->displacements = std::move(displacements_);
  node->depth = depth_of(*node);
  return node;
}

Tree Builder::finish(std::int64_t& first) {
  first = 0;
  if (displacements_.empty()) return nullptr;
  first = displacements_.front();
  for (std::int64_t& displacement : displacements_) displacement -= first;
  if (displacements_.size() == 1) return tree_of(0);
  const bool equal = all_equal();
  if (equal && evenly_spaced())
    return make_repeat(tree_of(0), displacements_.size(), displacements_[1]);
  return finish_list(equal);
}

TypeMap Inside::make(Tree tree, std::int64_t first, std::int64_t lower, std::int64_t extent) {
  TypeMap layout;
  layout.node_ = std::move(tree);
  layout.first_ = first;
  layout.lower_ = lower;
  layout.extent_ = extent;
  return layout;
}

Tiling tile(const TypeMap& layout, std::uint64_t position, std::uint64_t bytes) {
  const std::uint64_t size = layout.size();
  Tiling tiling;
  if (size == 0 || bytes == 0) return tiling;
  const std::uint64_t copy = position / size;
  tiling.begin = position - copy * size;
  tiling.origin = plus(Inside::first(layout), strides(copy, layout.extent()));
  tiling.tree =
      make_repeat(Inside::tree(layout), (tiling.begin + bytes - 1) / size + 1, layout.extent());
  return tiling;
}

}  // namespace pario::pattern::detail
