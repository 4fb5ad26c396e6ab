#include "core/pattern/node.hpp"

namespace pario::pattern {

using detail::Inside;
using detail::Measure;
using detail::plus;
using detail::strides;

std::uint64_t FileView::offset_of(std::uint64_t position) const {
  const detail::Tree& tree = Inside::tree(filetype);
  if (!tree) return displacement;
  const std::uint64_t copy = position / tree->size;
  const std::int64_t inside =
      plus(Inside::first(filetype), detail::offset_at(*tree, position - copy * tree->size));
  return displacement + static_cast<std::uint64_t>(plus(inside, strides(copy, filetype.extent())));
}

base::Extent FileView::find_run(std::uint64_t position, std::uint64_t bytes) const {
  const detail::Node* const node = Inside::tree(filetype).get();
  if (node == nullptr || bytes == 0 || !node->is_strip()) return {};
  std::int64_t begin = 0, end = 0;
  std::uint64_t inside = position;
  if (!contiguous()) {
    const std::uint64_t copy = position < node->size ? 0 : position / node->size;
    inside -= copy * node->size;
    const std::uint64_t length = node->is_block() ? node->size : node->child->size;
    const std::uint64_t block = inside < length ? 0 : inside / length;
    inside -= block * length;
    if (bytes > length - inside || __builtin_mul_overflow(copy, filetype.extent(), &begin) ||
        __builtin_add_overflow(begin, strides(block, node->stride), &begin) ||
        __builtin_add_overflow(begin, Inside::first(filetype), &begin))
      return {};
  }
  if (__builtin_add_overflow(begin, inside, &begin) || begin < 0 ||
      __builtin_add_overflow(begin, displacement, &begin) ||
      __builtin_add_overflow(begin, bytes, &end))
    return {};
  return {static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end)};
}

std::uint64_t FileView::position_of(std::uint64_t offset) const {
  const detail::Tree& tree = Inside::tree(filetype);
  if (!tree) return 0;
  // The offset in the tree of copy 0; copy k subtracts k extents.
  const std::int64_t seen =
      static_cast<std::int64_t>(offset - displacement) - Inside::first(filetype);
  const std::int64_t extent = filetype.extent();
  if (extent <= 0) return detail::bytes_below(*tree, seen);
  const std::int64_t above = seen - tree->whole.high;
  std::uint64_t copy = above < 0 ? 0 : static_cast<std::uint64_t>(above / extent) + 1;
  std::uint64_t bytes = copy * tree->size;
  for (; seen - strides(copy, extent) > tree->whole.low; ++copy)
    bytes += detail::bytes_below(*tree, seen - strides(copy, extent));
  return bytes;
}

namespace {

Measure measure(const TypeMap& layout, std::uint64_t position, std::uint64_t bytes) {
  const detail::Tiling tiling = detail::tile(layout, position, bytes);
  return tiling.tree
             ? detail::measure(*tiling.tree, tiling.origin, tiling.begin, tiling.begin + bytes)
             : Measure{};
}

/// The summary of one run of bytes in the file and in memory.
Summary summarise_run(std::uint64_t begin, std::uint64_t bytes) {
  return {.span = base::Extent::at(begin, bytes),
          .bytes = bytes,
          .pieces = 1,
          .granule = detail::granule_of(begin | bytes),
          .memory_pieces = 1};
}

}  // namespace

Summary summarise(const Access& access) {
  if (access.bytes > 0 && access.view.contiguous() && access.memory.contiguous())
    return summarise_run(access.view.displacement + access.position, access.bytes);
  Summary summary;
  const Measure file = measure(access.view.filetype, access.position, access.bytes);
  if (file.pieces == 0) return summary;
  const std::uint64_t origin = access.view.displacement;
  summary.span = {origin + static_cast<std::uint64_t>(file.low),
                  origin + static_cast<std::uint64_t>(file.high)};
  summary.bytes = access.bytes;
  summary.pieces = file.pieces;
  summary.granule =
      detail::granule_of(file.bits | (origin + static_cast<std::uint64_t>(file.first)));
  summary.memory_pieces = measure(access.memory, 0, access.bytes).pieces;
  return summary;
}

}  // namespace pario::pattern
