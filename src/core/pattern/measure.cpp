#include <algorithm>
#include <bit>

#include "core/pattern/node.hpp"

namespace pario::pattern::detail {

Measure block_measure(std::int64_t first, std::uint64_t length) {
  Measure result;
  if (length == 0) return result;
  result.pieces = 1;
  result.first = result.last_begin = result.low = first;
  result.last = result.high = plus(first, static_cast<std::int64_t>(length));
  result.bits = length;
  return result;
}

Measure shift_measure(Measure measure, std::int64_t by) {
  for (std::int64_t* place :
       {&measure.first, &measure.last, &measure.last_begin, &measure.low, &measure.high})
    *place = plus(*place, by);
  return measure;
}

Measure join_measures(const Measure& a, const Measure& b) {
  if (a.pieces == 0) return b;
  if (b.pieces == 0) return a;
  Measure result;
  result.pieces = a.pieces + b.pieces - (a.last == b.first ? 1 : 0);
  result.first = a.first;
  result.last = b.last;
  result.last_begin = b.last_begin;
  result.low = std::min(a.low, b.low);
  result.high = std::max(a.high, b.high);
  result.bits =
      a.bits | b.bits | (static_cast<std::uint64_t>(b.first) - static_cast<std::uint64_t>(a.first));
  result.monotonic = a.monotonic && b.monotonic && a.last_begin <= b.first;
  result.ordered = a.ordered && b.ordered && a.last <= b.first;
  return result;
}

Measure repeat_measure(const Measure& one, std::uint64_t count, std::int64_t stride) {
  if (count == 0 || one.pieces == 0) return {};
  if (count == 1) return one;
  const std::int64_t shift = strides(count - 1, stride);
  const bool joins = one.last == plus(one.first, stride);
  Measure result = one;
  result.pieces = count * one.pieces - (joins ? count - 1 : 0);
  result.last = plus(one.last, shift);
  result.last_begin = plus(one.last_begin, shift);
  result.low = std::min(one.low, plus(one.low, shift));
  result.high = std::max(one.high, plus(one.high, shift));
  result.bits |= static_cast<std::uint64_t>(stride);
  result.monotonic = one.monotonic && plus(one.first, stride) >= one.last_begin;
  result.ordered = one.ordered && plus(one.first, stride) >= one.last;
  return result;
}

std::uint64_t granule_of(std::uint64_t bits) {
  return std::uint64_t{1} << std::countr_zero(bits | kMaxGranule);
}

namespace {

Measure measure_part(const Node& node, std::uint64_t index, std::int64_t origin,
                     std::uint64_t begin, std::uint64_t end) {
  const std::int64_t at = plus(origin, node.displacement(index));
  if (const Node* part = node.part(index)) return measure(*part, at, begin, end);
  return block_measure(plus(at, static_cast<std::int64_t>(begin)), end - begin);
}

/// Measures the whole parts [from, to).
Measure measure_parts(const Node& node, std::int64_t origin, std::uint64_t from, std::uint64_t to) {
  if (from >= to) return {};
  if (node.kind == Node::Kind::repeat)
    return repeat_measure(shift_measure(node.child->whole, plus(origin, node.displacement(from))),
                          to - from, node.stride);
  Measure result;
  for (std::uint64_t i = from; i < to; ++i)
    result = join_measures(result, measure_part(node, i, origin, 0, node.part_size(i)));
  return result;
}

}  // namespace

Measure measure(const Node& node, std::int64_t origin, std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return {};
  if (begin == 0 && end == node.size) return shift_measure(node.whole, origin);
  if (node.is_block())
    return block_measure(plus(origin, static_cast<std::int64_t>(begin)), end - begin);
  const std::uint64_t head = node.part_at(begin), tail = node.part_at(end - 1);
  begin -= node.part_position(head);
  end -= node.part_position(tail);
  if (head == tail) return measure_part(node, head, origin, begin, end);
  const Measure middle = measure_parts(node, origin, head + 1, tail);
  return join_measures(
      join_measures(measure_part(node, head, origin, begin, node.part_size(head)), middle),
      measure_part(node, tail, origin, 0, end));
}

namespace {

std::uint64_t repeat_below(const Node& node, std::int64_t offset) {
  const Node& child = *node.child;
  if (node.stride == 0) return node.count * bytes_below(child, offset);
  std::int64_t stride = node.stride, at = 0;
  if (stride < 0) {  // the same copies, from the other end
    at = strides(node.count - 1, stride);
    stride = -stride;
  }
  std::uint64_t whole = 0;
  const std::int64_t above = offset - at - child.whole.high;
  if (above >= 0) whole = std::min(node.count, static_cast<std::uint64_t>(above / stride) + 1);
  std::uint64_t bytes = whole * child.size;
  for (std::uint64_t i = whole; i < node.count; ++i) {
    const std::int64_t inside = offset - at - strides(i, stride);
    if (inside <= child.whole.low) break;
    bytes += bytes_below(child, inside);
  }
  return bytes;
}

std::uint64_t part_below(const Node& node, std::uint64_t index, std::int64_t offset) {
  const std::int64_t inside = offset - node.displacements[index];
  if (const Node* part = node.part(index)) return bytes_below(*part, inside);
  return inside <= 0 ? 0 : std::min(node.part_size(index), static_cast<std::uint64_t>(inside));
}

std::uint64_t list_below(const Node& node, std::int64_t offset) {
  const auto& places = node.displacements;
  if (node.whole.ordered) {
    const auto index =
        static_cast<std::uint64_t>(std::lower_bound(places.begin(), places.end(), offset) -
                                   places.begin()) -
        1;
    return node.part_position(index) + part_below(node, index, offset);
  }
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < places.size(); ++i) bytes += part_below(node, i, offset);
  return bytes;
}

}  // namespace

std::uint64_t bytes_below(const Node& node, std::int64_t offset) {
  if (offset <= node.whole.low) return 0;
  if (offset >= node.whole.high) return node.size;
  if (node.is_block()) return static_cast<std::uint64_t>(offset);
  return node.kind == Node::Kind::repeat ? repeat_below(node, offset) : list_below(node, offset);
}

std::int64_t offset_at(const Node& node, std::uint64_t position) {
  std::int64_t at = 0;
  for (const Node* here = &node; here != nullptr && !here->is_block();) {
    const std::uint64_t index = here->part_at(position);
    position -= here->part_position(index);
    at = plus(at, here->displacement(index));
    here = here->part(index);
  }
  return plus(at, static_cast<std::int64_t>(position));
}

}  // namespace pario::pattern::detail
