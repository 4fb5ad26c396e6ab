#include <algorithm>
#include <utility>

#include "core/pattern/node.hpp"

namespace pario::pattern {

using detail::Builder;
using detail::Inside;
using detail::plus;
using detail::strides;
using detail::Tree;

namespace {

/// Layouts with more pieces count as overlapping, unless their parts are disjoint.
constexpr std::uint64_t kMostSorted = std::uint64_t{1} << 22;

struct Bounds {
  bool any = false;
  std::int64_t lower = 0, upper = 0;

  void add(std::int64_t from, std::int64_t to) {
    lower = any ? std::min(lower, from) : from;
    upper = any ? std::max(upper, to) : to;
    any = true;
  }
  /// Adds `count` copies of a layout from `displacement` on.
  void add(const TypeMap& layout, std::int64_t displacement, std::uint64_t count,
           std::int64_t stride) {
    const bool nothing = layout.size() == 0 && layout.extent() == 0 && layout.lower() == 0;
    if (count == 0 || nothing) return;
    for (const std::int64_t shift : {std::int64_t{0}, strides(count - 1, stride)}) {
      const std::int64_t from = plus(plus(layout.lower(), displacement), shift);
      add(from, plus(from, layout.extent()));
    }
  }
};

TypeMap finish(Builder& builder, const Bounds& bounds) {
  std::int64_t first = 0;
  Tree tree = builder.finish(first);
  return Inside::make(std::move(tree), first, bounds.lower, bounds.upper - bounds.lower);
}

bool pieces_overlap(const TypeMap& layout) {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  runs.reserve(layout.pieces());
  Cursor cursor(layout, 0, layout.size());
  for (Run run = cursor.current(); run.length > 0; run = cursor.current()) {
    runs.emplace_back(run.offset, plus(run.offset, static_cast<std::int64_t>(run.length)));
    cursor.advance(run.length);
  }
  std::sort(runs.begin(), runs.end());
  return std::adjacent_find(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
           return a.second > b.first;
         }) != runs.end();
}

/// True if the copies are disjoint and each is without overlap; false also means "not known".
bool apart(const detail::Node& node) {
  if (node.whole.ordered) return true;
  if (node.kind != detail::Node::Kind::repeat || !apart(*node.child)) return false;
  const std::uint64_t span = static_cast<std::uint64_t>(node.child->whole.high) -
                             static_cast<std::uint64_t>(node.child->whole.low);
  return static_cast<std::uint64_t>(node.stride < 0 ? -node.stride : node.stride) >= span;
}

bool same_runs(const TypeMap& a, const TypeMap& b) {
  Cursor left(a, 0, a.size()), right(b, 0, b.size());
  while (left.current().length > 0) {
    const Run one = left.current(), other = right.current();
    if (one.offset != other.offset || one.length != other.length) return false;
    left.advance(one.length);
    right.advance(other.length);
  }
  return true;
}

}  // namespace

TypeMap::TypeMap() = default;

TypeMap TypeMap::block(std::uint64_t size) {
  static const TypeMap& byte =
      *new TypeMap(Inside::make(detail::make_block(1), 0, 0, 1));  // the default of every access
  if (size == 1) return byte;
  return Inside::make(detail::make_block(size), 0, 0, static_cast<std::int64_t>(size));
}

TypeMap TypeMap::repeat(const TypeMap& of, std::uint64_t count, std::int64_t stride) {
  Bounds bounds;
  bounds.add(of, 0, count, stride);
  Tree tree = detail::make_repeat(of.node_, count, stride);
  const std::int64_t first = tree ? of.first_ : 0;
  return Inside::make(std::move(tree), first, bounds.lower, bounds.upper - bounds.lower);
}

TypeMap TypeMap::sequence(std::span<const std::pair<std::int64_t, TypeMap>> parts) {
  Bounds bounds;
  Builder builder;
  builder.reserve(parts.size());
  for (const auto& [displacement, layout] : parts) {
    bounds.add(layout, displacement, 1, 0);
    builder.add(plus(displacement, layout.first_), layout.node_);
  }
  return finish(builder, bounds);
}

TypeMap TypeMap::make_indexed(const TypeMap& of, std::span<const std::int64_t> displacements,
                              std::span<const std::uint64_t> counts) {
  Bounds bounds;
  Builder builder;
  builder.reserve(displacements.size());
  Tree repeat;
  std::uint64_t repeated = 0;
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    const std::uint64_t count = counts[counts.size() == 1 ? 0 : i];
    bounds.add(of, displacements[i], count, of.extent_);
    const std::int64_t at = plus(displacements[i], of.first_);
    if (of.contiguous()) {
      builder.add_block(at, count * of.size());
      continue;
    }
    if (i == 0 || count != repeated) repeat = detail::make_repeat(of.node_, count, of.extent_);
    repeated = count;
    builder.add(at, repeat);
  }
  return finish(builder, bounds);
}

TypeMap TypeMap::with_extent(std::int64_t lower, std::int64_t extent) const {
  return Inside::make(node_, first_, lower, extent);
}

std::uint64_t TypeMap::size() const { return node_ ? node_->size : 0; }
std::int64_t TypeMap::lower() const { return lower_; }
std::int64_t TypeMap::extent() const { return extent_; }
std::int64_t TypeMap::true_lower() const { return node_ ? plus(first_, node_->whole.low) : 0; }
std::int64_t TypeMap::true_extent() const {
  return node_ ? node_->whole.high - node_->whole.low : 0;
}
bool TypeMap::monotonic() const { return !node_ || node_->whole.monotonic; }
std::uint64_t TypeMap::pieces() const { return node_ ? node_->whole.pieces : 0; }

bool TypeMap::contiguous() const {
  if (size() != static_cast<std::uint64_t>(extent_)) return false;
  return !node_ || (node_->is_block() && first_ == 0);
}

bool TypeMap::overlapping() const {
  if (!node_ || apart(*node_)) return false;
  if (node_->whole.monotonic || node_->whole.pieces > kMostSorted) return true;
  return pieces_overlap(*this);
}

std::uint64_t TypeMap::granule() const {
  return node_ ? detail::granule_of(node_->whole.bits | static_cast<std::uint64_t>(first_)) : 0;
}

bool TypeMap::operator==(const TypeMap& other) const {
  if (lower_ != other.lower_ || extent_ != other.extent_ || size() != other.size()) return false;
  if (!node_) return true;
  if (first_ != other.first_ || pieces() != other.pieces()) return false;
  return detail::same(node_, other.node_) || same_runs(*this, other);
}

}  // namespace pario::pattern
