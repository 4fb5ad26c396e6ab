#include "parallel/engine/boxes.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

namespace pario::engine {
namespace {

using pattern::TypeMap;

/// One box: its bytes in the file from `begin` to `end`, and in memory from `memory` on.
struct PlacedBox {
  std::uint64_t begin = 0, end = 0;
  TypeMap in_file;
  std::byte* memory = nullptr;
  TypeMap in_memory;
};

struct MemoryRun {
  std::uint64_t offset = 0;
  std::byte* memory = nullptr;
  std::uint64_t length = 0;
};

/// Bytes between two addresses, which may belong to different arrays.
std::int64_t bytes_between(const std::byte* from, const std::byte* to) {
  return reinterpret_cast<std::intptr_t>(to) - reinterpret_cast<std::intptr_t>(from);
}

/// The elements of a box in C order; `strides` are the bytes between them on each axis.
TypeMap layout_of(std::uint64_t element, std::span<const std::uint64_t> shape,
                  std::span<const std::int64_t> strides) {
  std::uint64_t run = element;
  std::size_t axes = shape.size();
  while (axes > 0 && (shape[axes - 1] == 1 || std::cmp_equal(strides[axes - 1], run)))
    run *= shape[--axes];
  TypeMap layout = TypeMap::block(run);
  while (axes-- > 0) layout = TypeMap::repeat(layout, shape[axes], strides[axes]);
  return layout;
}

/// The strides of an array in C order.
std::vector<std::int64_t> strides_of(const Box& box) {
  std::vector<std::int64_t> strides(box.whole.size());
  auto stride = static_cast<std::int64_t>(box.element);
  for (std::size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= static_cast<std::int64_t>(box.whole[axis]);
  }
  return strides;
}

PlacedBox place(const Box& box) {
  const std::vector<std::int64_t> strides = strides_of(box);
  std::uint64_t begin = box.place;
  for (std::size_t axis = 0; axis < strides.size(); axis++)
    begin += box.begin[axis] * static_cast<std::uint64_t>(strides[axis]);
  const TypeMap in_file = layout_of(box.element, box.shape, strides);
  return {.begin = begin,
          .end = begin + static_cast<std::uint64_t>(in_file.true_extent()),
          .in_file = in_file,
          .memory = box.memory,
          .in_memory = layout_of(box.element, box.shape, box.strides)};
}

/// Lists the runs of a box that are contiguous in the file and in memory.
void append_runs(const PlacedBox& box, std::vector<MemoryRun>& runs) {
  const std::uint64_t bytes = box.in_file.size();
  pattern::Cursor in_file(box.in_file, 0, bytes), in_memory(box.in_memory, 0, bytes);
  for (std::uint64_t done = 0, length = 0; done < bytes; done += length) {
    const pattern::Run file = in_file.current(), memory = in_memory.current();
    length = std::min(file.length, memory.length);
    runs.push_back(
        {box.begin + static_cast<std::uint64_t>(file.offset), box.memory + memory.offset, length});
    in_file.advance(length);
    in_memory.advance(length);
  }
}

/// One box for several that lie between each other in the file.
PlacedBox join(std::span<const PlacedBox> boxes) {
  std::vector<MemoryRun> runs;
  for (const PlacedBox& box : boxes) append_runs(box, runs);
  std::ranges::stable_sort(runs, {}, &MemoryRun::offset);
  std::vector<std::int64_t> file_places, memory_places;
  std::vector<std::uint64_t> lengths;
  for (const MemoryRun& run : runs) {
    file_places.push_back(static_cast<std::int64_t>(run.offset - boxes.front().begin));
    memory_places.push_back(bytes_between(boxes.front().memory, run.memory));
    lengths.push_back(run.length);
  }
  const TypeMap byte = TypeMap::block(1);
  return {.begin = boxes.front().begin,
          .in_file = TypeMap::make_indexed(byte, file_places, lengths),
          .memory = boxes.front().memory,
          .in_memory = TypeMap::make_indexed(byte, memory_places, lengths)};
}

/// Joins boxes, in the order of the file, so that each of the result ends before the next begins.
std::vector<PlacedBox> separate(std::span<const PlacedBox> sorted) {
  std::vector<PlacedBox> found;
  for (std::size_t first = 0, last = 0; first < sorted.size(); first = last) {
    std::uint64_t end = sorted[first].end;
    for (last = first + 1; last < sorted.size() && sorted[last].begin < end; last++)
      end = std::max(end, sorted[last].end);
    found.push_back(last == first + 1 ? sorted[first] : join(sorted.subspan(first, last - first)));
  }
  return found;
}

}  // namespace

base::Result<pattern::Access> access_of_boxes(std::span<const Box> boxes,
                                              plan::Direction direction) {
  std::vector<PlacedBox> sorted;
  for (const Box& box : boxes)
    if (std::ranges::find(box.shape, std::uint64_t{0}) == box.shape.end())
      sorted.push_back(place(box));
  if (sorted.empty()) return pattern::Access{};
  std::ranges::sort(sorted, {}, &PlacedBox::begin);
  const std::vector<PlacedBox> separated = separate(sorted);
  const PlacedBox& first = separated.front();
  std::vector<std::pair<std::int64_t, TypeMap>> in_file, in_memory;
  for (const PlacedBox& box : separated) {
    if (direction == plan::Direction::write && box.in_file.overlapping())
      return base::Error{.number = EINVAL,
                         .where = base::Extent::at(box.begin, box.in_file.size()),
                         .detail = "boxes of one rank overlap in the file"};
    in_file.emplace_back(static_cast<std::int64_t>(box.begin - first.begin), box.in_file);
    in_memory.emplace_back(bytes_between(first.memory, box.memory), box.in_memory);
  }
  const TypeMap filetype = TypeMap::sequence(in_file);
  return pattern::Access{.buffer = first.memory,
                         .memory = TypeMap::sequence(in_memory),
                         .view = {.displacement = first.begin, .filetype = filetype},
                         .bytes = filetype.size()};
}

base::Result<std::uint64_t> move_boxes(SharedFile& file, plan::Direction direction,
                                       std::span<const Box> boxes) {
  const bool writes = direction == plan::Direction::write;
  const char* const call = writes ? "write_boxes" : "read_boxes";
  const auto access = access_of_boxes(boxes, direction);
  if (!access) {
    base::Error error = access.error();
    error.operation = call;
    error.path = file.path();
    error.rank = file.comm().rank();
    file.refuse(direction, error, call);
    return error;
  }
  return writes ? file.write(*access, With::together, call)
                : file.read(*access, With::together, call);
}

}  // namespace pario::engine
